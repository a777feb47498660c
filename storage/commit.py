"""The commit of extractions: two round trips around the fold, a few scopes at a time.

The order of the statements is what the promises rest on (docs/architecture/memory-model.md,
"The transaction"): locks in key order, the fencing number, the fact rows held, then the evidence read, then
everything written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.errors import ClaimLostError, PermanentError, StorageUnavailableError
from domain.jobs import Claim, Job, JobOrder, JobOutcome
from domain.memory.assertions import Scope
from domain.memory.changes import Kind
from domain.memory.fold import ConflictingEvidenceError
from domain.memory.reconcile import Occasion, Projected, reconcile
from domain.memory.timeline import Rules
from domain.ports import RecallTokenizer
from domain.stores import Extracted
from storage.candidate_rows import window_row
from storage.commit_read_sql import (
    AS_PROJECTION,
    HOLD_JOBS,
    LOCK_SCOPES,
    TOUCHED_BY_COMMANDS,
)
from storage.commit_reads import Reading, ScopeReader, Touched
from storage.commit_write_sql import END_JOBS
from storage.commit_writes import Writes, owner_of
from storage.evidence_rows import assertion_row
from storage.job_rows import changed, job_from_row, outcome_row
from storage.json_text import Row, rows_text
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
    def touched(self) -> Touched:
        session = self.claim.session
        return Touched(
            scope=self.claim.scope,
            slots=(),
            session_id=str(session.session_id),
            generation=self.claim.order.generation,
            # The first worker to hold a session for the first time finds nothing of it.
            again=self.claim.fence > 1 or self.claim.revision > 1,
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
        scope = Scope(tenant=order.tenant_id, user=str(order.user_id), avatar=str(order.avatar_id))
        async with self._database.transaction() as conn:
            await conn.execute(LOCK_SCOPES, {"keys": [_lock_key(scope)]})
            await conn.execute(AS_PROJECTION)
            cursor = await conn.execute(TOUCHED_BY_COMMANDS, owner_of(scope))
            slots = tuple(row[0] for row in await cursor.fetchall())
            reader = ScopeReader(conn, [Touched(scope=scope, slots=slots)])
            await reader.send()
            reading = (await reader.collect())[0]
            projected = reconcile(
                reading.stored(is_serving=True),
                Occasion(
                    reason="command", traceparent=order.traceparent, correlation_id=order.correlation_id
                ),
                self._rules,
            )
            writes = Writes(tokenizer=self._tokenizer)
            events = writes.add_projected(scope, projected, reading.now, None)
            writes.records += outbox_rows(
                events, self._encode, tenant_id=order.tenant_id, user_id=order.user_id
            )
            await writes.send(conn)

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
        keys = sorted({_lock_key(one.claim.scope) for one in works})
        holder = conn.cursor(row_factory=dict_row)
        reader = ScopeReader(conn, [one.touched for one in works])
        await conn.execute(LOCK_SCOPES, {"keys": keys})
        await conn.execute(AS_PROJECTION)
        await holder.execute(HOLD_JOBS, {"scopes": rows_text([_held(n, one) for n, one in enumerate(works)])})
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
        is_serving = held["serving_generation"] == order.generation
        try:
            projected = reconcile(reading.stored(is_serving=is_serving), occasion, self._rules)
        except ConflictingEvidenceError as exc:
            raise PermanentError("the session's evidence contradicts itself") from exc
        outcome = _counted(work.outcome, projected)
        self._add_session(writes, work)
        events = writes.add_projected(scope, projected, reading.now, claim.session.language)
        row = {
            **held,
            "status": "completed",
            "finished_at": held["now"],
            "next_attempt_at": None,
            "error": None,
            "outcome": outcome_row(outcome),
        }
        writes.rows[END_JOBS].append({**_held(0, work), "outcome": row["outcome"]})
        told = [*events, changed("completed", row)]
        writes.records += outbox_rows(told, self._encode, tenant_id=order.tenant_id, user_id=order.user_id)
        return job_from_row(row)

    def _add_session(self, writes: Writes, work: _Work) -> None:
        """Add what the session itself leaves: its assertions, vectors and windows."""
        claim, owner = work.claim, owner_of(work.claim.scope)
        session = {"session_id": claim.session.session_id, "generation": claim.order.generation}
        if work.touched.again:
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
        "job_id": order.job_id,
        "fence": work.claim.fence,
    }


def _counted(outcome: JobOutcome, projected: Projected) -> JobOutcome:
    return replace(
        outcome,
        facts_created=projected.counts.get(Kind.CREATED, 0),
        facts_reinforced=projected.counts.get(Kind.REINFORCED, 0),
        facts_superseded=projected.counts.get(Kind.SUPERSEDED, 0),
        candidates_held=projected.held,
    )


def _lock_key(scope: Scope) -> int:
    """Number the lock of a user's memory; all avatars share it, so that their events keep one order."""
    digest = blake2b(f"{scope.tenant}\x1f{scope.user}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
