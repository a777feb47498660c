"""Intake: a conversation and its job in one transaction, once each (docs/architecture/intake.md)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.arrivals import (
    Acceptance,
    Decision,
    EndedConversation,
    KnownSession,
    PostedMessage,
    Verdict,
    content_digest,
    decide,
    together,
)
from domain.conversation import LIVE, Message, UserRef
from domain.errors import ConflictError, InvalidInputError
from domain.jobs import JobStatus, job_id_of
from domain.ports import Clock, RecallText
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
    ADD_SESSION,
    DROP_MESSAGES,
    LOCK_JOB,
    LOCK_SESSION,
    NOTE_CONFLICT,
    POST_TO_OPEN,
    PUT_MESSAGES,
    READ_MESSAGES,
    READ_PLAN,
    RESOLVE_USER,
    REVISE_JOB,
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
            user_id = await _resolve(conn, one.tenant_id, one.user)
            session = await _lock_session(conn, one, user_id)
            job_id = job_id_of(one.tenant_id, one.session_id, one.generation)
            job = await _lock_job(conn, one.tenant_id, user_id, job_id)
            messages = await _messages(conn, one, user_id)
            revision = job["revision"] if job is not None else 0
            decision = decide(_known(session, messages, revision, has_job=job is not None), one)
            revision = await self._carry_out(conn, arrival, decision, user_id=user_id, revision=revision)
        return Acceptance(verdict=decision.verdict, job_id=job_id, user_id=user_id, revision=revision)

    async def _carry_out(
        self, conn: AsyncConnection, arrival: Arrival, decision: Decision, *, user_id: UUID, revision: int
    ) -> int:
        """Write what ``decision`` says and return the job's revision."""
        match decision.verdict:
            case Verdict.DUPLICATE:
                return revision
            case Verdict.CONFLICT:
                row = session_row(arrival, decision, user_id)
                await conn.execute(NOTE_CONFLICT, {**row, "ended_at": arrival.conversation.ended_at})
                return revision
            case Verdict.REVISED:
                await self._store(conn, arrival, decision, user_id)
                return await self._revise(conn, arrival.conversation, user_id, due_at=None)
            case Verdict.ACCEPTED | Verdict.WAITING | Verdict.EMPTY:
                await self._store(conn, arrival, decision, user_id)
                await self._add_job(conn, arrival, decision.verdict, user_id)
                return 1

    async def _store(
        self, conn: AsyncConnection, arrival: Arrival, decision: Decision, user_id: UUID
    ) -> None:
        one = arrival.conversation
        await conn.execute(WRITE_SESSION, session_row(arrival, decision, user_id))
        scope = _session_params(one, user_id)
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
        user_id: UUID,
        due_at: datetime | None,
    ) -> int:
        """Queue the job anew; whoever runs it loses it, since its session is not what it read."""
        params = {
            "tenant_id": one.tenant_id,
            "user_id": user_id,
            "now": self._clock.now(),
            "due_at": due_at,
            "job_id": job_id_of(one.tenant_id, one.session_id, LIVE),
            "lane": None,
            "traceparent": None,
            "correlation_id": None,
        }
        if isinstance(one, EndedConversation):
            plan = await self._plan(conn, one.tenant_id)
            params |= {
                "job_id": job_id_of(one.tenant_id, one.session_id, one.generation),
                "lane": lane_of(one.origin, plan).value,
                "traceparent": one.traceparent,
                "correlation_id": one.correlation_id,
            }
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(REVISE_JOB, params)
            job = await cursor.fetchone()
        if job is None:
            return 0
        records = outbox_rows(
            job_events(job), self._outgoing.encode, tenant_id=one.tenant_id, user_id=user_id
        )
        await write_records(conn, records)
        return int(job["revision"])

    async def _post_to_ended(self, posted: PostedMessage, recall: RecallText, grace: timedelta) -> None:
        async with self._database.transaction() as conn:
            user_id = await _resolve(conn, posted.tenant_id, posted.user)
            session = await _lock_session(conn, posted, user_id)
            job_id = job_id_of(posted.tenant_id, posted.session_id, LIVE)
            job = await _lock_job(conn, posted.tenant_id, user_id, job_id)
            messages = await _messages(conn, posted, user_id)
            # Post and end come over different topics: whichever came first, the wording of the end counts.
            whole = together([posted.message], messages)
            if content_digest(whole) == content_digest(messages):
                return
            await self._replace(conn, posted, whole, recall, user_id)
            await conn.execute(WRITE_SESSION, _ended_params(posted, session, whole, user_id))
            if job is not None and not _will_be_read(job):
                await self._revise(conn, posted, user_id, due_at=self._clock.now() + grace)

    async def _replace(
        self,
        conn: AsyncConnection,
        posted: PostedMessage,
        whole: Sequence[Message],
        recall: RecallText,
        user_id: UUID,
    ) -> None:
        scope = _session_params(posted, user_id)
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


def _will_be_read(job: Mapping[str, Any]) -> bool:
    """Say whether a worker is still to take the job, and with it whatever the session has by then."""
    return job["status"] in (JobStatus.QUEUED, JobStatus.RETRYING)


async def _resolve(conn: AsyncConnection, tenant_id: str, user: UserRef) -> UUID:
    proposed = proposed_user_id(tenant_id, user)
    if user.user_id is not None:
        return proposed
    params = {"tenant_id": tenant_id, "external_user_id": user.external_user_id, "user_id": proposed}
    cursor = await conn.execute(RESOLVE_USER, params)
    row = await cursor.fetchone()
    return row[0] if row is not None else proposed


async def _lock_session(
    conn: AsyncConnection, one: EndedConversation | PostedMessage, user_id: UUID
) -> Mapping[str, Any]:
    params = {**_session_params(one, user_id), "timezone": one.timezone, "language": one.language}
    await conn.execute(ADD_SESSION, params)
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(LOCK_SESSION, params)
        row = await cursor.fetchone()
    if row is None or (row["user_id"], row["avatar_id"]) != (user_id, one.avatar_id):
        raise ConflictError("the session belongs to another user or avatar")
    return row


async def _lock_job(
    conn: AsyncConnection, tenant_id: str, user_id: UUID, job_id: UUID
) -> Mapping[str, Any] | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(LOCK_JOB, {"tenant_id": tenant_id, "user_id": user_id, "job_id": job_id})
        return await cursor.fetchone()


async def _messages(
    conn: AsyncConnection, one: EndedConversation | PostedMessage, user_id: UUID
) -> tuple[Message, ...]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(READ_MESSAGES, _session_params(one, user_id))
        return tuple(Message(**row) for row in await cursor.fetchall())


def _known(
    session: Mapping[str, Any], messages: tuple[Message, ...], revision: int, *, has_job: bool
) -> KnownSession:
    return KnownSession(
        ended_at=session["ended_at"],
        message_count=session["message_count"],
        digest=session["digest"],
        messages=messages,
        revision=revision,
        has_job=has_job,
    )


def _session_params(one: EndedConversation | PostedMessage, user_id: UUID) -> dict[str, Any]:
    return {
        "tenant_id": one.tenant_id,
        "user_id": user_id,
        "avatar_id": one.avatar_id,
        "session_id": one.session_id,
    }


def _open_params(posted: PostedMessage, recall: RecallText) -> dict[str, Any]:
    message = posted.message
    return {
        **_session_params(posted, proposed_user_id(posted.tenant_id, posted.user)),
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


def _ended_params(
    posted: PostedMessage, session: Mapping[str, Any], whole: Sequence[Message], user_id: UUID
) -> dict[str, Any]:
    return {
        **_session_params(posted, user_id),
        "started_at": None,
        "ended_at": session["ended_at"],
        "message_count": None,
        "timezone": posted.timezone,
        "language": posted.language,
        "digest": content_digest(whole).hex(),
    }
