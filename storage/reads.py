"""Reads for the responder: one round trip each."""

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from domain.conversation import UserRef
from domain.errors import InvalidInputError
from domain.injection import PendingSession, RankedFact, RankedRead
from domain.jobs import Job, JobStatus
from domain.memory.facts import FactRow
from domain.session_waits import Session
from domain.stores import FactPage, FactsQuery
from storage.fact_rows import FACT_COLUMNS, fact_from_row
from storage.job_rows import JOB_COLUMNS, job_from_row
from storage.pool import Database

# The beginning of a statement: whoever is asked about; nobody for an external id never seen.
PERSON = """
    WITH person AS MATERIALIZED (
        SELECT coalesce(
                   %(user_id)s::uuid,
                   (SELECT p.user_id
                      FROM lis.proxy_users AS p
                     WHERE p.tenant_id = %(tenant_id)s
                       AND p.external_user_id = %(external_user_id)s)) AS user_id
    )
"""

# A column of a statement: what ended and is not remembered yet, of the person ``u``.
PENDING = """
           (SELECT json_agg(json_build_object('session_id', j.session_id, 'status', j.status)
                            ORDER BY j.queued_at, j.session_id)
              FROM lis.extraction_jobs AS j
              JOIN lis.sessions AS s
                ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
             WHERE j.user_id = u.user_id
               AND j.tenant_id = %(tenant_id)s
               AND j.avatar_id = %(avatar_id)s
               AND j.generation = s.serving_generation
               AND j.status IN ('queued', 'running', 'retrying')) AS pending
"""

_RANKED: Final[LiteralString] = (
    """
    SELECT u.user_id,
           (SELECT json_agg(f ORDER BY f.confidence DESC, f.last_said_at DESC, f.fact_id)
              FROM ranked AS f) AS facts,"""  # noqa: S608 - literals alone
    + PENDING
    + """
      FROM person AS u
"""
)

RANKED_NOW: Final[LiteralString] = (
    PERSON  # noqa: S608 - literals alone
    + """, ranked AS (
        SELECT f.fact_id, f.category, f.fact_key, f.fact_value, f.confidence, f.last_said_at
          FROM person AS u
          JOIN lis.memory_facts AS f ON f.user_id = u.user_id
         WHERE f.tenant_id = %(tenant_id)s
           AND f.avatar_id = %(avatar_id)s
           AND f.status = 'active'
           AND f.merged_into IS NULL
           AND (f.expires_at IS NULL OR f.expires_at > now())
         ORDER BY f.confidence DESC, f.last_said_at DESC, f.fact_id
         LIMIT %(limit)s
    )
"""
    + _RANKED
)

RANKED_AS_OF: Final[LiteralString] = (
    PERSON  # noqa: S608 - literals alone
    + """, ranked AS (
        SELECT f.fact_id, f.category, f.fact_key, f.fact_value, f.confidence, f.last_said_at
          FROM person AS u
          JOIN lis.memory_facts AS f ON f.user_id = u.user_id
         WHERE f.tenant_id = %(tenant_id)s
           AND f.avatar_id = %(avatar_id)s
           AND f.status <> 'deleted'
           AND f.merged_into IS NULL
           AND f.mode <> 'plans'
           AND f.valid @> %(as_of)s::timestamptz
           AND (f.expires_at IS NULL OR f.expires_at > %(as_of)s)
         ORDER BY f.confidence DESC, f.last_said_at DESC, f.fact_id
         LIMIT %(limit)s
    )
"""
    + _RANKED
)

LIST_FACTS: Final[LiteralString] = (
    PERSON  # noqa: S608 - literals alone
    + """
    SELECT """
    + FACT_COLUMNS
    + """
      FROM person AS u
      JOIN lis.memory_facts AS f ON f.user_id = u.user_id
     WHERE f.tenant_id = %(tenant_id)s
       AND f.avatar_id = %(avatar_id)s
       AND (%(statuses)s::text[] IS NULL
            OR CASE WHEN f.status = 'active' AND f.expires_at <= now() THEN 'expired' ELSE f.status END
               = ANY (%(statuses)s::text[]))
       AND (%(categories)s::text[] IS NULL OR f.category = ANY (%(categories)s::text[]))
       AND (%(after_time)s::timestamptz IS NULL
            OR (f.last_said_at, f.fact_id) < (%(after_time)s::timestamptz, %(after_id)s::uuid))
     ORDER BY f.last_said_at DESC, f.fact_id DESC
     LIMIT %(limit)s
"""
)

FIND_JOB: Final[LiteralString] = (
    "SELECT "  # noqa: S608 - literals alone
    + JOB_COLUMNS
    + """, s.conflict IS NOT NULL AS has_conflict
      FROM lis.extraction_jobs AS j
      LEFT JOIN lis.sessions AS s ON s.tenant_id = j.tenant_id AND s.session_id = j.session_id
     WHERE j.tenant_id = %(tenant_id)s
       AND (j.job_id = %(job_id)s::uuid OR (%(job_id)s::uuid IS NULL AND j.session_id = %(session_id)s::uuid))
     ORDER BY j.generation IS NOT DISTINCT FROM s.serving_generation DESC, j.queued_at DESC
     LIMIT 1
"""
)

ENDED_SESSIONS: Final[LiteralString] = """
    SELECT DISTINCT j.tenant_id, j.session_id
      FROM unnest(%(tenant_ids)s::text[], %(session_ids)s::uuid[]) AS w (tenant_id, session_id)
      JOIN lis.sessions AS s ON s.tenant_id = w.tenant_id AND s.session_id = w.session_id
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = s.tenant_id AND j.user_id = s.user_id AND j.session_id = s.session_id
     WHERE j.generation = s.serving_generation
       AND j.status NOT IN ('queued', 'running', 'retrying')
"""

SESSION_FACTS: Final[LiteralString] = (
    """
    WITH said AS MATERIALIZED (
        SELECT DISTINCT a.avatar_id, a.claim_id
          FROM lis.assertions AS a
          JOIN lis.sessions AS s
            ON s.tenant_id = a.tenant_id AND s.user_id = a.user_id AND s.session_id = a.session_id
         WHERE a.user_id = %(user_id)s
           AND a.tenant_id = %(tenant_id)s
           AND a.session_id = %(session_id)s
           AND a.generation = s.serving_generation
           AND a.stance <> 'forgets'
    )
    SELECT DISTINCT ON (f.fact_id) """  # noqa: S608 - literals alone
    + FACT_COLUMNS
    + """
      FROM said AS a
      JOIN lis.memory_facts AS f
        ON f.user_id = %(user_id)s AND f.tenant_id = %(tenant_id)s AND f.avatar_id = a.avatar_id
       AND a.claim_id = ANY (f.names)
     ORDER BY f.fact_id
"""
)


class PostgresReads:
    """``domain.stores.Reads``; give it a pool of its own, so that writes never make a read wait."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ranked(
        self, tenant_id: str, user: UserRef, avatar_id: UUID, *, limit: int, as_of: datetime | None
    ) -> RankedRead:
        """Return the facts of a scope by (confidence, last said), best first, and its pending sessions."""
        params = {**person(tenant_id, user), "avatar_id": avatar_id, "limit": limit, "as_of": as_of}
        rows = await self._rows(RANKED_NOW if as_of is None else RANKED_AS_OF, params)
        row = rows[0]
        return RankedRead(
            user_id=row["user_id"],
            facts=tuple(_ranked(one) for one in row["facts"] or ()),
            pending=pending_of(row["pending"]),
        )

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return facts of a scope in a stable order, newest first said last; no statuses means all.

        Raises:
            InvalidInputError: ``cursor`` is none of ours.
        """
        after_time, after_id = _position(query.cursor)
        rows = await self._rows(
            LIST_FACTS,
            {
                **person(query.tenant_id, query.user),
                "avatar_id": query.avatar_id,
                "statuses": sorted(query.statuses) or None,
                "categories": sorted(query.categories) or None,
                "after_time": after_time,
                "after_id": after_id,
                "limit": query.limit + 1,
            },
        )
        items = tuple(fact_from_row(row) for row in rows[: query.limit])
        return FactPage(items=items, next_cursor=_cursor(items[-1]) if len(rows) > query.limit else None)

    async def job(self, tenant_id: str, *, job_id: UUID | None, session_id: UUID | None) -> Job | None:
        """Return a job by its id, or what serves of a session; one in conflict says so once it has ended."""
        params = {"tenant_id": tenant_id, "job_id": job_id, "session_id": session_id}
        rows = await self._rows(FIND_JOB, params)
        if not rows:
            return None
        row = dict(rows[0])
        if row["has_conflict"] and JobStatus(row["status"]).is_final:
            row["status"] = JobStatus.CONFLICT.value
        return job_from_row(row)

    async def ended(self, sessions: Collection[Session]) -> Collection[Session]:
        """Return those of ``sessions`` whose job has ended, in whatever way."""
        params = {
            "tenant_ids": [tenant for tenant, _ in sessions],
            "session_ids": [session for _, session in sessions],
        }
        rows = await self._rows(ENDED_SESSIONS, params)
        return [(row["tenant_id"], row["session_id"]) for row in rows]

    async def session_facts(self, tenant_id: str, user_id: UUID, session_id: UUID) -> Sequence[FactRow]:
        """Return the facts that a session is evidence of."""
        params = {"tenant_id": tenant_id, "user_id": user_id, "session_id": session_id}
        return [fact_from_row(row) for row in await self._rows(SESSION_FACTS, params)]

    async def _rows(self, statement: LiteralString, params: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, params)
            return await cursor.fetchall()


def person(tenant_id: str, user: UserRef) -> dict[str, Any]:
    """Return the parameters of ``PERSON``."""
    return {
        "tenant_id": tenant_id,
        "user_id": user.user_id,
        "external_user_id": user.external_user_id if user.user_id is None else None,
    }


def pending_of(rows: Sequence[Mapping[str, Any]] | None) -> tuple[PendingSession, ...]:
    """Read the sessions of ``PENDING``."""
    return tuple(
        PendingSession(session_id=UUID(one["session_id"]), status=one["status"]) for one in rows or ()
    )


def _ranked(row: Mapping[str, Any]) -> RankedFact:
    return RankedFact(
        fact_id=UUID(row["fact_id"]),
        category=row["category"],
        fact_key=row["fact_key"],
        value=row["fact_value"],
        confidence=row["confidence"],
        last_said_at=datetime.fromisoformat(row["last_said_at"]),
    )


def _cursor(last: FactRow) -> str:
    return base64.urlsafe_b64encode(f"{last.last_said_at.isoformat()} {last.fact_id}".encode()).decode()


def _position(cursor: str | None) -> tuple[datetime | None, UUID | None]:
    if cursor is None:
        return None, None
    try:
        time, _, fact_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(time), UUID(fact_id)
    except (ValueError, binascii.Error) as exc:
        raise InvalidInputError("cursor: not one that was given out", field="cursor") from exc
