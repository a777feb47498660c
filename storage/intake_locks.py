"""What is known of a session that arrives again, with its rows locked: the session's, then its job's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.arrivals import EndedConversation, KnownSession, PostedMessage
from domain.conversation import LIVE, Message, UserRef
from domain.errors import ConflictError
from domain.jobs import JobStatus, job_id_of
from storage.intake_rows import proposed_user_id
from storage.intake_sql import ADD_SESSION, LOCK_JOB, LOCK_SESSION, READ_MESSAGES, RESOLVE_USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """A session under its lock. ``job_id`` is the job that the arrival addresses, ``served_id`` what is read.

    An arrival that names no label is about the generation that serves.
    """

    user_id: UUID
    known: KnownSession
    job_id: UUID
    served_id: UUID
    status: JobStatus | None


async def lock(conn: AsyncConnection, one: EndedConversation | PostedMessage) -> Locked:
    """Lock the session of ``one``, made where there is none, and its job.

    Raises:
        ConflictError: the session belongs to another user or avatar.
    """
    user_id = await _resolve(conn, one.tenant_id, one.user)
    session = await _lock_session(conn, one, user_id)
    served_id = job_id_of(one.tenant_id, one.session_id, session["serving_generation"])
    job_id = served_id
    if isinstance(one, EndedConversation) and one.generation != LIVE:
        job_id = job_id_of(one.tenant_id, one.session_id, one.generation)
    job = await _lock_job(conn, one.tenant_id, user_id, job_id)
    known = KnownSession(
        ended_at=session["ended_at"],
        message_count=session["message_count"],
        digest=session["digest"],
        messages=await _messages(conn, one, user_id),
        revision=job["revision"] if job is not None else 0,
        has_job=job is not None,
    )
    status = JobStatus(job["status"]) if job is not None else None
    return Locked(user_id=user_id, known=known, job_id=job_id, served_id=served_id, status=status)


def session_params(one: EndedConversation | PostedMessage, user_id: UUID) -> dict[str, Any]:
    """Return the parameters that name the session of ``one``."""
    return {
        "tenant_id": one.tenant_id,
        "user_id": user_id,
        "avatar_id": one.avatar_id,
        "session_id": one.session_id,
    }


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
    params = {**session_params(one, user_id), "timezone": one.timezone, "language": one.language}
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
        await cursor.execute(READ_MESSAGES, session_params(one, user_id))
        return tuple(Message(**row) for row in await cursor.fetchall())
