"""Jobs: taken with a fencing number, given back, ended; nothing is written under an old number."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.conversation import Message, SessionText
from domain.errors import ClaimLostError, SlotsTakenError
from domain.events import DomainEvent
from domain.jobs import Claim, Job, JobError, JobKind, JobOrder, JobOutcome, JobStatus
from domain.judging import Judging, KnownClaims, Vectors
from domain.memory.assertions import Scope
from domain.memory.fold import DEFAULT
from domain.memory.slots import Slot
from domain.memory.timeline import Rules
from domain.outbox import RawRecord
from domain.ports import Clock, RecallTokenizer, WindowCandidates
from domain.replays import ReplayMode
from domain.stores import Extracted
from storage.candidate_rows import window_from_row, window_row
from storage.claim_reads import claims_of_session, known_claims
from storage.commit import Commits
from storage.dead_letters import Failure, bury
from storage.job_rows import changed, ordered
from storage.job_sql import CLAIM, END_ATTEMPT, KEEP_WINDOWS, LOCK_TENANTS, READ_CLAIMED, TAKE_STRANDED
from storage.json_text import object_text, rows_text, time_of
from storage.natural_batch import NaturalBatch
from storage.outbox_rows import outbox_rows, write_records
from storage.outgoing import Outgoing
from storage.pool import Database
from storage.put_offs import PutOffs, tenant_key

_CAP: Final = 16
_SLOTS: Final = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """How an attempt ends that commits nothing."""

    status: JobStatus
    due_in: timedelta | None = None
    gate: str | None = None
    error: JobError | None = None
    is_counted: bool = True
    record: RawRecord | None = None

    @property
    def params(self) -> dict[str, object]:
        """The columns to write."""
        return {
            "status": self.status.value,
            "gate": self.gate,
            "uncounted": 0 if self.is_counted else 1,
            "due_in": self.due_in,
            "is_final": self.status.is_final,
            "error": object_text(asdict(self.error)) if self.error is not None else None,
        }


class PostgresJobs:
    """``domain.stores.JobStore``; ``worker`` names this process in the rows of the jobs that it holds.

    ``slots`` is how many jobs of one tenant run at once, where the tenant's row says nothing else.
    """

    def __init__(  # noqa: PLR0913 - what one process works with
        self,
        database: Database,
        *,
        outgoing: Outgoing,
        tokenizer: RecallTokenizer,
        clock: Clock,
        worker: str,
        rules: Rules = DEFAULT,
        slots: int = _SLOTS,
    ) -> None:
        self._database = database
        self._slots = slots
        self._put_offs = PutOffs(database, encode=outgoing.encode, slots=slots)
        self._outgoing = outgoing
        self._clock = clock
        self._worker = worker
        self._commits = Commits(database, encode=outgoing.encode, tokenizer=tokenizer, rules=rules)
        self._claims = NaturalBatch[tuple[JobOrder, timedelta], Claim | None](self._take, cap=_CAP)

    async def claim(self, order: JobOrder, *, deadline: timedelta) -> Claim | None:
        """Take the job with the next fencing number, with its session; None when there is nothing to do.

        Raises:
            SlotsTakenError: the tenant has as many jobs running as it may; the job is as it was.
        """
        claim = await self._claims.submit((order, deadline))
        self._outgoing.wake()
        return claim

    async def keep_windows(self, claim: Claim, windows: Mapping[str, WindowCandidates]) -> None:
        """Keep candidates by the digest of their window, so that a retry does not pay the model again.

        Raises:
            ClaimLostError: another worker holds the job.
        """
        rows = [{"digest": digest, "candidates": window_row(one)} for digest, one in windows.items()]
        async with self._database.connection() as conn:
            cursor = await conn.execute(KEEP_WINDOWS, {**_held(claim), "windows": rows_text(rows)})
            if await cursor.fetchone() is None:
                raise ClaimLostError("another worker holds the job")

    async def commit(self, claim: Claim, extracted: Extracted, outcome: JobOutcome) -> Job:
        """Replace the session's assertions, fold the touched slots, write the difference and end the job.

        Raises:
            ClaimLostError: another worker holds the job; nothing was written.
        """
        job = await self._commits.commit(claim, extracted, outcome)
        self._outgoing.wake()
        return job

    async def known_claims(
        self, scope: Scope, slots: Collection[Slot], *, beside: UUID | None = None
    ) -> KnownClaims:
        """Return what served sessions say in ``slots``, without that of ``beside``; nothing is locked."""
        return await known_claims(self._database, scope, slots, beside=beside)

    async def claims_of_session(self, order: JobOrder) -> Vectors:
        """Return the claims of the session of ``order``, as it is served, with their vectors."""
        return await claims_of_session(self._database, order)

    async def commit_judging(self, order: JobOrder, judging: Judging) -> None:
        """Keep the judgements, fold what they touch, count them with the job; order again what is owed."""
        await self._commits.judge(order, judging)
        self._outgoing.wake()

    async def refold(self, order: JobOrder) -> None:
        """Fold the slots of a scope that commands touched since (the gateway's soft delete)."""
        await self._commits.refold(order)
        self._outgoing.wake()

    async def put_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> None:
        """Give the job back for a later attempt, ``counted`` as one or not; a lost claim is left alone."""
        status = JobStatus.RETRYING if counted or error is not None else JobStatus.QUEUED
        await self._end(claim, _Ending(status=status, due_in=due_in, error=error, is_counted=counted))

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order a job that found no slot again, for when one is expected; it costs no attempt."""
        await self._put_offs.put_off(order, job_seconds=job_seconds)

    async def gate(self, claim: Claim, reason: str) -> None:
        """End the job without an extraction; the session stays."""
        await self._end(claim, _Ending(status=JobStatus.GATED, gate=reason))

    async def bury(self, claim: Claim, record: RawRecord, *, error: JobError) -> None:
        """End the job as dead, with its dead letter."""
        await self._end(claim, _Ending(status=JobStatus.DEAD, error=error, record=record))

    async def requeue_stranded(self, *, older_than: timedelta) -> int:
        """Order again the jobs whose record was lost with a broker; say how many."""
        async with self._database.transaction() as conn:
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(TAKE_STRANDED, {"older_than": older_than})
                jobs = await cursor.fetchall()
            for job in jobs:
                events: list[DomainEvent] = [ordered(job)]
                rows = outbox_rows(
                    events, self._outgoing.encode, tenant_id=job["tenant_id"], user_id=job["user_id"]
                )
                await write_records(conn, rows)
        self._outgoing.wake()
        return len(jobs)

    async def _take(self, wanted: Sequence[tuple[JobOrder, timedelta]]) -> Sequence[Claim | Exception | None]:
        """Take every job of a batch at once; each one that is ordered twice goes to one caller alone."""
        orders = {(order.tenant_id, order.job_id): (order, deadline) for order, deadline in reversed(wanted)}
        given = [
            {
                "tenant_id": o.tenant_id,
                "user_id": o.user_id,
                "job_id": o.job_id,
                "deadline": f"{d.total_seconds()} s",
                "place": place,
            }
            for place, (o, d) in enumerate(reversed(orders.values()))
        ]
        keys = sorted({tenant_key(tenant_id) for tenant_id, _ in orders})
        async with self._database.pipeline() as conn:
            async with (
                conn.cursor(row_factory=dict_row) as cursor,
                conn.cursor(row_factory=dict_row) as reader,
            ):
                params = {"orders": rows_text(given), "worker": self._worker, "slots": self._slots}
                await conn.execute(LOCK_TENANTS, {"keys": keys})
                await cursor.execute(CLAIM, params)
                await reader.execute(READ_CLAIMED, params)
                due = await cursor.fetchall()
                taken = {(row["tenant_id"], row["job_id"]): row for row in due if row["job_id"] is not None}
                sessions = {(row["tenant_id"], row["job_id"]): row for row in await reader.fetchall()}
            records = [
                row
                for job in taken.values()
                for row in outbox_rows(
                    [changed("started", job)],
                    self._outgoing.encode,
                    tenant_id=job["tenant_id"],
                    user_id=job["user_id"],
                )
            ]
            await write_records(conn, records)
        beyond = {(row["of_tenant"], row["of_job"]) for row in due if row["is_beyond"]}
        claims: list[Claim | Exception | None] = []
        for order, _ in wanted:
            key = (order.tenant_id, order.job_id)
            row = taken.pop(key, None)
            if row is not None:
                claims.append(_claim_or_error({**row, **sessions.get(key, {})}, order))
            else:
                claims.append(SlotsTakenError("all slots are taken") if key in beyond else None)
        return claims

    async def _end(self, claim: Claim, ending: _Ending) -> None:
        params = {**_held(claim), **ending.params}
        async with self._database.transaction() as conn:
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(END_ATTEMPT, params)
                job = await cursor.fetchone()
            if job is None:
                return
            order = claim.order
            await write_records(
                conn,
                outbox_rows(
                    _told(job), self._outgoing.encode, tenant_id=order.tenant_id, user_id=order.user_id
                ),
            )
            await self._bury_record(conn, claim, ending)
        self._outgoing.wake()

    async def _bury_record(self, conn: AsyncConnection, claim: Claim, ending: _Ending) -> None:
        if ending.record is None or ending.error is None:
            return
        failure = Failure(
            error_class="permanent" if ending.error.code == "permanent" else "exhausted",
            reason=ending.error.message,
            attempts=claim.attempt,
            at=self._clock.now(),
            job=(claim.order.tenant_id, claim.order.job_id),
        )
        await bury(conn, ending.record, failure, self._outgoing.encode_dead_letter)


def _told(job: Mapping[str, Any]) -> list[DomainEvent]:
    """Return what is told of a job whose attempt ended without a commit, and its next order."""
    match JobStatus(job["status"]):
        case JobStatus.RETRYING:
            return [changed("retrying", job), ordered(job, at=job["next_attempt_at"])]
        case JobStatus.QUEUED:
            return [ordered(job, at=job["next_attempt_at"])]
        case status:
            return [changed(status.value, job)]


def _held(claim: Claim) -> dict[str, object]:
    order = claim.order
    return {
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "job_id": order.job_id,
        "fence": claim.fence,
    }


def _claim_or_error(row: Mapping[str, Any], order: JobOrder) -> Claim | Exception:
    """Read one claim; a row that cannot be read stops its own job alone."""
    try:
        return _claim(row, order)
    except (KeyError, TypeError, ValueError) as exc:
        return exc


def _claim(row: Mapping[str, Any], order: JobOrder) -> Claim:
    return Claim(
        order=JobOrder(
            kind=JobKind.EXTRACT,
            tenant_id=row["tenant_id"],
            user_id=row["user_id"],
            avatar_id=row["avatar_id"],
            job_id=row["job_id"],
            session_id=row["session_id"],
            generation=row["generation"],
            traceparent=order.traceparent or row["traceparent"],
            correlation_id=order.correlation_id or row["correlation_id"],
        ),
        scope=Scope(tenant=row["tenant_id"], user=str(row["user_id"]), avatar=str(row["avatar_id"])),
        fence=row["fence"],
        revision=row["revision"],
        attempt=row["attempts"],
        takeovers=row["takeovers"],
        session=SessionText(
            session_id=row["session_id"],
            ended_at=row["ended_at"],
            messages=tuple(_message(one) for one in row["messages"] or ()),
            timezone=row["timezone"],
            language=row["language"],
        ),
        message_count=row["message_count"],
        queued_at=row["queued_at"],
        content_digest=row["content_digest"],
        replay_mode=ReplayMode(row["replay_mode"]) if row["replay_mode"] is not None else None,
        kept={digest: window_from_row(one) for digest, one in (row["kept"] or {}).items()},
        has_memory=row["has_memory"],
        allowed_categories=frozenset(row["allowed_categories"] or ()),
    )


def _message(row: Mapping[str, Any]) -> Message:
    return Message(**{**row, "sent_at": time_of(row["sent_at"])})
