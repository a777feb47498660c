"""Intake: a conversation and its job in one transaction, once each (docs/architecture/intake.md)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.arrivals import (
    Acceptance,
    Decision,
    EndedConversation,
    PostedMessage,
    Verdict,
    content_digest,
    decide,
    together,
)
from domain.conversation import Message
from domain.errors import InvalidInputError
from domain.jobs import JobStatus, job_id_of
from domain.ports import Clock, RecallText
from storage.intake_locks import Locked, lock, session_params
from storage.intake_rows import (
    DEFAULT_PLAN,
    Arrival,
    job_events,
    job_row,
    lane_of,
    message_rows,
    proposed_user_id,
    recall_id,
    session_row,
)
from storage.intake_sql import (
    ACCEPT_NEW,
    ADD_JOB,
    DROP_MESSAGES,
    NOTE_CONFLICT,
    POST_TO_OPEN,
    PUT_MESSAGES,
    READ_PLAN,
    REVISE_JOB,
    REVISE_RUNNING,
    WRITE_SESSION,
)
from storage.json_text import rows_text
from storage.natural_batch import NaturalBatch
from storage.outbox_rows import outbox_rows, write_records
from storage.outgoing import Outgoing
from storage.pool import Database

_CAP: Final = 16


class PostgresIntake:
    """``domain.stores.Intake``: one statement for the new sessions of a batch, a transaction for another."""

    def __init__(self, database: Database, *, outgoing: Outgoing, clock: Clock) -> None:
        self._database = database
        self._outgoing = outgoing
        self._clock = clock
        self._plans: dict[str, str] = {}
        self._batch = NaturalBatch[Arrival, Acceptance | None](self._accept_new, cap=_CAP)

    async def accept(
        self, conversation: EndedConversation, recall: Mapping[str, RecallText], *, grace: timedelta
    ) -> Acceptance:
        """Store session, messages, job and outbox rows in one transaction; say what the arrival did.

        Raises:
            ConflictError: the session belongs to another user or avatar.
        """
        arrival = Arrival(conversation=conversation, recall=recall, grace=grace)
        accepted = await self._batch.submit(arrival)
        if accepted is None:
            accepted = await self._accept_known(arrival)
        self._outgoing.wake()
        return accepted

    async def post(self, message: PostedMessage, recall: RecallText, *, grace: timedelta) -> None:
        """Store one message; one after the session's end makes a new revision, due after ``grace``.

        Raises:
            ConflictError: the session belongs to another user or avatar.
        """
        async with self._database.connection() as conn:
            cursor = await conn.execute(POST_TO_OPEN, _open_params(message, recall))
            is_stored = await cursor.fetchone() is not None
        if not is_stored:
            await self._post_to_ended(message, recall, grace)
            self._outgoing.wake()

    async def _accept_new(self, arrivals: Sequence[Arrival]) -> Sequence[Acceptance | Exception | None]:
        """Store what is new; None for a session that is known, or whose user or plan is not as guessed."""
        firsts = {arrival.key: arrival for arrival in reversed(arrivals)}
        now = self._clock.now()
        try:
            sessions = rows_text([self._new_row(firsts[key], now) for key in sorted(firsts)])
            async with self._database.connection() as conn:
                cursor = await conn.execute(ACCEPT_NEW, {"sessions": sessions})
                fresh = {(row[0], row[1]) for row in await cursor.fetchall() if row[2]}
        except (InvalidInputError, TypeError, ValueError):
            # One of them cannot be stored; taken one by one, only that one fails.
            return [None] * len(arrivals)
        return [
            _accepted_as_new(one) if one.key in fresh and firsts[one.key] is one else None for one in arrivals
        ]

    def _new_row(self, arrival: Arrival, now: datetime) -> Mapping[str, Any]:
        one = arrival.conversation
        user_id = proposed_user_id(one.tenant_id, one.user)
        decision = decide(None, one)
        plan = self._plans.get(one.tenant_id, DEFAULT_PLAN)
        job = job_row(arrival, decision.verdict, user_id=user_id, plan=plan, now=now)
        records = outbox_rows(
            job_events(job), self._outgoing.encode, tenant_id=one.tenant_id, user_id=user_id
        )
        messages = message_rows(one.session_id, decision.messages, arrival.recall)
        return {**job, **session_row(arrival, decision, user_id), "messages": messages, "records": records}

    async def _accept_known(self, arrival: Arrival) -> Acceptance:
        one = arrival.conversation
        async with self._database.transaction() as conn:
            found = await lock(conn, one)
            decision = decide(found.known, one)
            revision = await self._carry_out(conn, arrival, decision, found)
            if decision.is_stored and decision.digest != found.known.digest:
                await self._outdate(conn, one, found, due_at=None)
        return Acceptance(
            verdict=decision.verdict, job_id=found.job_id, user_id=found.user_id, revision=revision
        )

    async def _carry_out(
        self, conn: AsyncConnection, arrival: Arrival, decision: Decision, found: Locked
    ) -> int:
        """Write what ``decision`` says and return the job's revision."""
        match decision.verdict:
            case Verdict.DUPLICATE:
                return found.known.revision
            case Verdict.CONFLICT:
                if decision.is_stored:
                    row = session_row(arrival, decision, found.user_id)
                    await conn.execute(NOTE_CONFLICT, {**row, "ended_at": arrival.conversation.ended_at})
                return found.known.revision
            case Verdict.REVISED:
                await self._store(conn, arrival, decision, found.user_id)
                return await self._redo(conn, arrival, found)
            case Verdict.ACCEPTED | Verdict.WAITING | Verdict.EMPTY:
                if decision.is_stored:
                    await self._store(conn, arrival, decision, found.user_id)
                await self._add_job(conn, arrival, decision.verdict, found.user_id)
                return 1

    async def _redo(self, conn: AsyncConnection, arrival: Arrival, found: Locked) -> int:
        """Queue the job of what is served, and that of the label under which the revision came."""
        one = arrival.conversation
        revision = await self._revise(conn, one, found, found.served_id, due_at=None)
        if found.job_id == found.served_id:
            return revision
        if found.known.has_job:
            return await self._revise(conn, one, found, found.job_id, due_at=None)
        await self._add_job(conn, arrival, Verdict.ACCEPTED, found.user_id)
        return 1

    async def _store(
        self, conn: AsyncConnection, arrival: Arrival, decision: Decision, user_id: UUID
    ) -> None:
        one = arrival.conversation
        await conn.execute(WRITE_SESSION, session_row(arrival, decision, user_id))
        scope = session_params(one, user_id)
        ids = [message.message_id for message in decision.messages]
        gone = {"message_ids": ids, "recall_ids": [recall_id(one.session_id, found) for found in ids]}
        await conn.execute(DROP_MESSAGES, {**scope, **gone})
        rows = message_rows(one.session_id, decision.messages, arrival.recall)
        await conn.execute(PUT_MESSAGES, {**scope, "messages": rows_text(rows)})

    async def _add_job(
        self, conn: AsyncConnection, arrival: Arrival, verdict: Verdict, user_id: UUID
    ) -> None:
        tenant_id = arrival.conversation.tenant_id
        plan = await self._plan(conn, tenant_id)
        job = job_row(arrival, verdict, user_id=user_id, plan=plan, now=self._clock.now())
        await conn.execute(ADD_JOB, job)
        records = outbox_rows(job_events(job), self._outgoing.encode, tenant_id=tenant_id, user_id=user_id)
        await write_records(conn, records)

    async def _plan(self, conn: AsyncConnection, tenant_id: str) -> str:
        cursor = await conn.execute(READ_PLAN, {"tenant_id": tenant_id})
        row = await cursor.fetchone()
        self._plans[tenant_id] = row[0] if row is not None else DEFAULT_PLAN
        return self._plans[tenant_id]

    async def _revise(
        self,
        conn: AsyncConnection,
        one: EndedConversation | PostedMessage,
        found: Locked,
        job_id: UUID,
        due_at: datetime | None,
    ) -> int:
        """Queue the job anew; whoever runs it loses it, since its session is not what it read."""
        params = {
            **session_params(one, found.user_id),
            "now": self._clock.now(),
            "due_at": due_at,
            "job_id": job_id,
            "lane": None,
            "traceparent": None,
            "correlation_id": None,
        }
        if isinstance(one, EndedConversation):
            plan = await self._plan(conn, one.tenant_id)
            params |= {
                "lane": lane_of(one.origin, plan).value,
                "traceparent": one.traceparent,
                "correlation_id": one.correlation_id,
            }
        jobs = await self._queued(conn, REVISE_JOB, params)
        return jobs[0]["revision"] if jobs else 0

    async def _outdate(
        self,
        conn: AsyncConnection,
        one: EndedConversation | PostedMessage,
        found: Locked,
        due_at: datetime | None,
    ) -> None:
        """Queue the jobs anew that run in other generations than the one that was revised."""
        params = {
            **session_params(one, found.user_id),
            "now": self._clock.now(),
            "due_at": due_at,
            "job_id": found.job_id,
        }
        await self._queued(conn, REVISE_RUNNING, params)

    async def _queued(
        self, conn: AsyncConnection, statement: LiteralString, params: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, params)
            jobs = await cursor.fetchall()
        for job in jobs:
            records = outbox_rows(
                job_events(job), self._outgoing.encode, tenant_id=job["tenant_id"], user_id=job["user_id"]
            )
            await write_records(conn, records)
        return jobs

    async def _post_to_ended(self, posted: PostedMessage, recall: RecallText, grace: timedelta) -> None:
        async with self._database.transaction() as conn:
            found = await lock(conn, posted)
            # Post and end come over different topics: whichever came first, the wording of the end counts.
            whole = together([posted.message], found.known.messages)
            if content_digest(whole) == content_digest(found.known.messages):
                return
            await self._replace(conn, posted, whole, recall, found.user_id)
            await conn.execute(WRITE_SESSION, _ended_params(posted, found, whole))
            due_at = self._clock.now() + grace
            if found.status is not None and not _will_be_read(found.status):
                await self._revise(conn, posted, found, found.job_id, due_at=due_at)
            await self._outdate(conn, posted, found, due_at=due_at)

    async def _replace(
        self,
        conn: AsyncConnection,
        posted: PostedMessage,
        whole: Sequence[Message],
        recall: RecallText,
        user_id: UUID,
    ) -> None:
        scope = session_params(posted, user_id)
        ids = [message.message_id for message in whole]
        gone = {"message_ids": ids, "recall_ids": [recall_id(posted.session_id, found) for found in ids]}
        await conn.execute(DROP_MESSAGES, {**scope, **gone})
        rows = message_rows(posted.session_id, [posted.message], {posted.message.message_id: recall})
        await conn.execute(PUT_MESSAGES, {**scope, "messages": rows_text(rows)})


def _accepted_as_new(arrival: Arrival) -> Acceptance:
    one = arrival.conversation
    return Acceptance(
        verdict=decide(None, one).verdict,
        job_id=job_id_of(one.tenant_id, one.session_id, one.generation),
        user_id=proposed_user_id(one.tenant_id, one.user),
        revision=1,
    )


def _will_be_read(status: JobStatus) -> bool:
    """Say whether a worker is still to take the job, and with it whatever the session has by then."""
    return status in (JobStatus.QUEUED, JobStatus.RETRYING)


def _open_params(posted: PostedMessage, recall: RecallText) -> dict[str, Any]:
    message = posted.message
    return {
        **session_params(posted, proposed_user_id(posted.tenant_id, posted.user)),
        "external_user_id": posted.user.external_user_id if posted.user.user_id is None else None,
        "timezone": posted.timezone,
        "language": posted.language,
        "message_id": message.message_id,
        "position": message.position,
        "role": message.role,
        "content": message.content,
        "name": message.name,
        "sent_at": message.sent_at,
        "recall_id": recall_id(posted.session_id, message.message_id),
        "dl": recall.length,
        "tokens": list(recall.tokens),
    }


def _ended_params(posted: PostedMessage, found: Locked, whole: Sequence[Message]) -> dict[str, Any]:
    return {
        **session_params(posted, found.user_id),
        "started_at": None,
        "ended_at": found.known.ended_at,
        "message_count": None,
        "timezone": posted.timezone,
        "language": posted.language,
        "digest": content_digest(whole).hex(),
    }
