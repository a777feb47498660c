"""The commit of extractions: two round trips around the fold, a few scopes at a time.

The order of the statements is what the promises rest on (docs/architecture/memory-model.md,
"The transaction"): locks in key order, the fencing number, the fact rows held, then the evidence read, then
everything written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.errors import ClaimLostError, PermanentError, StorageUnavailableError
from domain.events import DomainEvent
from domain.jobs import Claim, Job, JobKind, JobOrder, JobOutcome
from domain.judging import Judging
from domain.memory.changes import Kind
from domain.memory.fold import ConflictingEvidenceError
from domain.memory.reconcile import Occasion, Projected, reconcile
from domain.memory.slots import slot_text
from domain.memory.timeline import Rules
from domain.ports import RecallTokenizer
from domain.replays import ReplayMode
from domain.stores import Extracted
from storage.candidate_rows import window_row
from storage.commit_read_sql import (
    AS_PROJECTION,
    HOLD_JOBS,
    LOCK_SCOPES,
    TOUCHED_BY_COMMANDS,
)
from storage.commit_reads import Reading, ScopeReader, Touched
from storage.commit_write_sql import ADD_JUDGEMENTS, COUNT_JUDGING, END_JOBS, SERVE
from storage.commit_writes import Writes, lock_key, owner_of
from storage.evidence_rows import assertion_row
from storage.job_rows import changed, job_from_row, ordered, outcome_row
from storage.json_text import Row, rows_text
from storage.judging_orders import judged_again, judged_later, judgement_rows, judging_cost
from storage.natural_batch import NaturalBatch
from storage.outbox_rows import outbox_rows
from storage.outgoing import Encode
from storage.pool import ContendedError, Database

_CAP: Final = 4
_MOST_CONTENDED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    claim: Claim
    extracted: Extracted
    outcome: JobOutcome

    @property
    def is_again(self) -> bool:
        """Whether there may be assertions already; the first worker at its first time finds none."""
        return self.claim.fence > 1 or self.claim.revision > 1

    @property
    def _may_switch(self) -> bool:
        """Whether what another generation says of the session may cease to serve."""
        return self.claim.replay_mode is ReplayMode.REPROCESS

    @property
    def touched(self) -> Touched:
        session = self.claim.session
        return Touched(
            scope=self.claim.scope,
            slots=(),
            session_id=str(session.session_id),
            generation=None if self._may_switch else self.claim.order.generation,
            again=self.is_again or self._may_switch,
            assertions=self.extracted.assertions,
        )


class Commits:
    """Commits extractions in natural batches, and folds scopes that commands have touched."""

    def __init__(
        self, database: Database, *, encode: Encode, tokenizer: RecallTokenizer, rules: Rules
    ) -> None:
        self._database = database
        self._rules = rules
        self._encode = encode
        self._tokenizer = tokenizer
        self._batch = NaturalBatch[_Work, Job](self._flush, cap=_CAP)

    async def commit(self, claim: Claim, extracted: Extracted, outcome: JobOutcome) -> Job:
        """Replace the session's assertions, fold, write the difference and end the job.

        Raises:
            ClaimLostError: another worker holds the job; nothing was written.
        """
        return await self._batch.submit(_Work(claim=claim, extracted=extracted, outcome=outcome))

    async def refold(self, order: JobOrder) -> None:
        """Fold the slots of the scope of ``order`` whose facts were changed without an event."""
        scope = order.scope
        async with self._database.transaction() as conn:
            await conn.execute(LOCK_SCOPES, {"keys": [lock_key(scope)]})
            await conn.execute(AS_PROJECTION)
            cursor = await conn.execute(TOUCHED_BY_COMMANDS, owner_of(scope))
            slots = tuple(row[0] for row in await cursor.fetchall())
            writes = Writes(tokenizer=self._tokenizer)
            occasion = Occasion(
                reason="command", traceparent=order.traceparent, correlation_id=order.correlation_id
            )
            events = await self._folded(conn, writes, Touched(scope=scope, slots=slots), occasion)
            writes.records += outbox_rows(
                events, self._encode, tenant_id=order.tenant_id, user_id=order.user_id
            )
            await writes.send(conn)

    async def judge(self, order: JobOrder, judging: Judging) -> None:
        """Keep what was judged and fold its slots; count it with the job, and order what is still owed."""
        scope = order.scope
        slots = {slot_text(one.slot) for judged in judging.judgements for one in judged.pair}
        async with self._database.transaction() as conn:
            await conn.execute(LOCK_SCOPES, {"keys": [lock_key(scope)]})
            await conn.execute(AS_PROJECTION)
            cursor = conn.cursor(row_factory=dict_row)
            await cursor.execute(COUNT_JUDGING, judging_cost(order, judging))
            job = await cursor.fetchone()
            writes = Writes(tokenizer=self._tokenizer)
            told = list[DomainEvent]()
            if judged := judgement_rows(scope, judging):
                await conn.execute(ADD_JUDGEMENTS, {"judgements": rows_text(judged)})
                occasion = Occasion(reason="judgement", session_id=order.session_id, job_id=order.job_id)
                told += await self._folded(conn, writes, Touched(scope=scope, slots=tuple(slots)), occasion)
            if job is not None and judging.is_owed:
                told.append(judged_again(job, judging))
            writes.records += outbox_rows(
                told, self._encode, tenant_id=order.tenant_id, user_id=order.user_id
            )
            await writes.send(conn)

    async def _folded(
        self, conn: AsyncConnection, writes: Writes, touched: Touched, occasion: Occasion
    ) -> list[DomainEvent]:
        """Fold what is stored of ``touched`` and add what that changes to ``writes``; return the events."""
        reader = ScopeReader(conn, [touched])
        await reader.send()
        reading = (await reader.collect())[0]
        projected = reconcile(reading.stored(), occasion, self._rules)
        return writes.add_projected(touched.scope, projected, reading.now, None)

    async def _flush(self, works: Sequence[_Work]) -> Sequence[Job | Exception]:
        """Commit all together; where one cannot be, each for itself."""
        if len({str(one.claim.scope) for one in works}) == len(works):
            try:
                return await self._together(works)
            except StorageUnavailableError:
                raise
            except Exception as exc:  # noqa: BLE001 - whatever one job does must not reach the others
                if len(works) == 1:
                    return [exc]
        return [await self._alone(one) for one in works]

    async def _alone(self, work: _Work) -> Job | Exception:
        try:
            return (await self._together([work]))[0]
        except Exception as exc:  # noqa: BLE001 - raised where the job was handed in
            return exc

    async def _together(self, works: Sequence[_Work]) -> list[Job]:
        """Commit ``works``, again where a gateway that updates many facts met them crosswise."""
        for _ in range(_MOST_CONTENDED):
            try:
                return await self._once(works)
            except ContendedError:
                continue
        return await self._once(works)

    async def _once(self, works: Sequence[_Work]) -> list[Job]:
        async with self._database.pipeline() as conn:
            held, readings = await self._read(conn, works)
            writes = Writes(tokenizer=self._tokenizer)
            jobs = [self._add(writes, *one) for one in zip(works, held, readings, strict=True)]
            await writes.send(conn)
        return jobs

    async def _read(
        self, conn: AsyncConnection, works: Sequence[_Work]
    ) -> tuple[list[Mapping[str, Any]], list[Reading]]:
        keys = sorted({lock_key(one.claim.scope) for one in works})
        holder = conn.cursor(row_factory=dict_row)
        reader = ScopeReader(conn, [one.touched for one in works])
        await conn.execute(LOCK_SCOPES, {"keys": keys})
        await conn.execute(AS_PROJECTION)
        await holder.execute(HOLD_JOBS, {"scopes": rows_text([_held(n, one) for n, one in enumerate(works)])})
        if judged := [row for one in works for row in judgement_rows(one.claim.scope, one.extracted.judging)]:
            # Before the reading, which then takes them for what is stored.
            await conn.execute(ADD_JUDGEMENTS, {"judgements": rows_text(judged)})
        await reader.send()
        jobs = {row["n"]: row for row in await holder.fetchall()}
        if len(jobs) < len(works):
            raise ClaimLostError("another worker holds the job")
        return [jobs[number] for number in range(len(works))], await reader.collect()

    def _add(self, writes: Writes, work: _Work, held: Mapping[str, Any], reading: Reading) -> Job:
        """Fold one scope and add what it changes to ``writes``; return the job as it is then."""
        claim, scope, order = work.claim, work.claim.scope, work.claim.order
        occasion = Occasion(
            reason="session",
            session_id=order.session_id,
            job_id=order.job_id,
            traceparent=held["traceparent"],
            correlation_id=held["correlation_id"],
        )
        outcome, events = work.outcome, list[DomainEvent]()
        if switches := _switches(held):
            writes.rows[SERVE].append(_served(work))
        if switches or held["serving_generation"] == order.generation:
            try:
                projected = reconcile(reading.stored(), occasion, self._rules)
            except ConflictingEvidenceError as exc:
                raise PermanentError("the session's evidence contradicts itself") from exc
            outcome = _counted(work.outcome, projected)
            events = writes.add_projected(scope, projected, reading.now, claim.session.language)
        self._add_session(writes, work)
        row = {
            **held,
            "status": "completed",
            "finished_at": held["now"],
            "next_attempt_at": None,
            "error": None,
            "outcome": outcome_row(outcome),
        }
        digest = claim.content_digest
        writes.rows[END_JOBS].append(
            {
                **_held(0, work),
                "outcome": row["outcome"],
                "content_digest": digest.hex() if digest is not None else None,
                "replaced_generation": held["serving_generation"] if switches else None,
            }
        )
        told = [*events, changed("completed", row)]
        if work.extracted.is_followed_up:
            told.append(ordered(held, kind=JobKind.FOLLOW_UP))
        if later := judged_later(held, work.extracted, reading):
            told.append(later)
        writes.records += outbox_rows(told, self._encode, tenant_id=order.tenant_id, user_id=order.user_id)
        return job_from_row(row)

    def _add_session(self, writes: Writes, work: _Work) -> None:
        """Add what the session itself leaves: its assertions, vectors and windows."""
        claim, owner = work.claim, owner_of(work.claim.scope)
        session = {"session_id": claim.session.session_id, "generation": claim.order.generation}
        if work.is_again:
            writes.again.append({**owner, **session, "again": True})
        writes.assertions += [assertion_row(one) for one in work.extracted.assertions]
        writes.add_vectors(claim.scope, work.extracted.model, work.extracted.vectors)
        writes.windows += [
            {**owner, **session, "digest": digest, "candidates": window_row(window)}
            for digest, window in work.extracted.windows.items()
            if digest not in claim.kept
        ]


def _held(number: int, work: _Work) -> Row:
    order = work.claim.order
    return {
        "n": number,
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "session_id": work.claim.session.session_id,
        "job_id": order.job_id,
        "fence": work.claim.fence,
    }


def _switches(held: Mapping[str, Any]) -> bool:
    """Say whether a reprocessed session begins to be served under its label: when it is first done.

    Done again later it does not take the place back from a generation that came after it.
    """
    is_other = held["serving_generation"] != held["generation"]
    is_first = held["replaced_generation"] is None
    return held["replay_mode"] == ReplayMode.REPROCESS and is_other and is_first


def _served(work: _Work) -> Row:
    order = work.claim.order
    return {
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "session_id": work.claim.session.session_id,
        "generation": order.generation,
    }


def _counted(outcome: JobOutcome, projected: Projected) -> JobOutcome:
    return replace(
        outcome,
        facts_created=projected.counts.get(Kind.CREATED, 0),
        facts_reinforced=projected.counts.get(Kind.REINFORCED, 0),
        facts_superseded=projected.counts.get(Kind.SUPERSEDED, 0),
        candidates_held=projected.held,
    )
