"""Lists of one scope, newest first, and the story of one fact."""

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from domain.conversation import UserRef
from domain.errors import InvalidInputError
from domain.listings import FactStory, Listed, ListingPage, ListingQuery
from domain.memory.facts import FactRow
from storage.fact_rows import FACT_COLUMNS, fact_from_row, fact_from_version
from storage.pool import Database
from storage.reads import PERSON, person


def _list_of(rows: LiteralString) -> LiteralString:
    """Return the statement that lists ``rows`` of a person, newest first, by the time and id of each."""
    return f"""{PERSON}
    SELECT l.*
      FROM ({rows}) AS l
     WHERE (%(after_time)s::timestamptz IS NULL
            OR (l.at, l.id) < (%(after_time)s::timestamptz, %(after_id)s::text))
     ORDER BY l.at DESC, l.id DESC
     LIMIT %(limit)s
"""  # noqa: S608 - literals alone


LIST_SESSIONS: Final[LiteralString] = _list_of("""
        SELECT coalesce(s.ended_at, s.created_at) AS at, s.session_id::text AS id, s.session_id,
               s.started_at, s.ended_at, s.message_count, s.revision, j.status, j.gate,
               s.conflict IS NOT NULL AS conflict
          FROM person AS u
          JOIN lis.sessions AS s ON s.user_id = u.user_id
          LEFT JOIN lis.extraction_jobs AS j
            ON j.user_id = s.user_id AND j.tenant_id = s.tenant_id AND j.session_id = s.session_id
           AND j.generation = s.serving_generation
         WHERE s.tenant_id = %(tenant_id)s
           AND s.avatar_id = %(avatar_id)s
""")
LIST_JOBS: Final[LiteralString] = _list_of("""
        SELECT j.queued_at AS at, j.job_id::text AS id, j.job_id, j.session_id, j.generation, j.status,
               j.revision, j.gate, j.plan, j.attempts, j.queued_at, j.started_at, j.finished_at,
               j.next_attempt_at
          FROM person AS u
          JOIN lis.extraction_jobs AS j ON j.user_id = u.user_id
         WHERE j.tenant_id = %(tenant_id)s
           AND j.avatar_id = %(avatar_id)s
           AND (%(session_id)s::uuid IS NULL OR j.session_id = %(session_id)s)
""")
LIST_CANDIDATES: Final[LiteralString] = _list_of("""
        SELECT p.updated_at AS at, p.candidate_id::text AS id, p.candidate_id, p.slot, p.mode, p.value,
               p.confidence, p.sessions
          FROM person AS u
          JOIN lis.pending_candidates AS p ON p.user_id = u.user_id
         WHERE p.tenant_id = %(tenant_id)s
           AND p.avatar_id = %(avatar_id)s
""")
LIST_CLARIFICATIONS: Final[LiteralString] = _list_of("""
        SELECT c.opened_at AS at, c.clarification_id::text AS id, c.clarification_id,
               c.current_fact AS left_fact_id, c.other_fact AS right_fact_id, a.fact_key,
               a.fact_value AS "left", b.fact_value AS "right", c.opened_at
          FROM person AS u
          JOIN lis.clarifications AS c ON c.user_id = u.user_id
          LEFT JOIN lis.memory_facts AS a
            ON a.user_id = c.user_id AND a.tenant_id = c.tenant_id AND a.avatar_id = c.avatar_id
           AND a.fact_id = c.current_fact
          LEFT JOIN lis.memory_facts AS b
            ON b.user_id = c.user_id AND b.tenant_id = c.tenant_id AND b.avatar_id = c.avatar_id
           AND b.fact_id = c.other_fact
         WHERE c.tenant_id = %(tenant_id)s
           AND c.avatar_id = %(avatar_id)s
""")
LIST_MESSAGES: Final[LiteralString] = _list_of("""
        SELECT m.sent_at AS at,
               m.session_id::text || lpad(m.position::text, 10, '0') || m.message_id AS id,
               m.session_id, m.message_id, m.position, m.role, m.name, m.content, m.sent_at
          FROM person AS u
          JOIN lis.chat_messages AS m ON m.user_id = u.user_id
         WHERE m.tenant_id = %(tenant_id)s
           AND m.avatar_id = %(avatar_id)s
           AND (%(session_id)s::uuid IS NULL OR m.session_id = %(session_id)s)
""")
# The id that a fact has now, or one that it had under an earlier name.
FACT_OF_PERSON: Final[LiteralString] = (
    PERSON  # noqa: S608 - literals alone
    + "SELECT "
    + FACT_COLUMNS
    + """
      FROM person AS u
      JOIN lis.memory_facts AS f ON f.user_id = u.user_id
     WHERE f.tenant_id = %(tenant_id)s
       AND f.avatar_id = %(avatar_id)s
       AND (f.fact_id = %(fact_id)s OR %(fact_id)s = ANY (f.names))
     ORDER BY f.fact_id = %(fact_id)s DESC
     LIMIT 1
"""
)
EVIDENCE_OF: Final[LiteralString] = """
    SELECT a.session_id, a.generation, a.message_ids, a.excerpt, a.said_at, a.confidence, a.method
      FROM lis.assertions AS a
      LEFT JOIN lis.sessions AS s
        ON s.tenant_id = a.tenant_id AND s.user_id = a.user_id AND s.session_id = a.session_id
     WHERE a.user_id = %(user_id)s
       AND a.tenant_id = %(tenant_id)s
       AND a.avatar_id = %(avatar_id)s
       AND a.claim_id = ANY (%(names)s::uuid[])
       AND a.generation = coalesce(s.serving_generation, a.generation)
       AND a.stance <> 'forgets'
     ORDER BY a.said_at, a.session_id, a.position
     LIMIT 200
"""
VERSIONS_OF: Final[LiteralString] = """
    SELECT v.revision, v.change, v.at, v.reason, v.session_id, v.fact
      FROM lis.memory_versions AS v
     WHERE v.user_id = %(user_id)s
       AND v.tenant_id = %(tenant_id)s
       AND v.avatar_id = %(avatar_id)s
       AND v.fact_id = ANY (%(names)s::uuid[])
     ORDER BY v.number
     LIMIT 500
"""

_STATEMENTS: Final[Mapping[Listed, LiteralString]] = {
    Listed.SESSIONS: LIST_SESSIONS,
    Listed.JOBS: LIST_JOBS,
    Listed.CANDIDATES: LIST_CANDIDATES,
    Listed.CLARIFICATIONS: LIST_CLARIFICATIONS,
    Listed.MESSAGES: LIST_MESSAGES,
}


class PostgresListings:
    """``domain.listings.ReadsListings``; give it the pool of the reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: ListingQuery) -> ListingPage:
        """Return one page, newest first.

        Raises:
            InvalidInputError: ``cursor`` is none of ours.
        """
        after_time, after_id = _position(query.cursor)
        params = {
            **person(query.tenant_id, query.user),
            "avatar_id": query.avatar_id,
            "session_id": query.session_id,
            "after_time": after_time,
            "after_id": after_id,
            "limit": query.limit + 1,
        }
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_STATEMENTS[query.what], params)
            rows = await cursor.fetchall()
        shown = rows[: query.limit]
        return ListingPage(
            items=tuple(
                {name: value for name, value in row.items() if name not in ("at", "id")} for row in shown
            ),
            next_cursor=_cursor(shown[-1]) if len(rows) > query.limit else None,
        )

    async def story(self, tenant_id: str, user: UserRef, avatar_id: UUID, fact_id: UUID) -> FactStory | None:
        """Return the fact that has or had ``fact_id``, with everything behind it."""
        asked = {**person(tenant_id, user), "avatar_id": avatar_id, "fact_id": fact_id}
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(FACT_OF_PERSON, asked)
            row = await cursor.fetchone()
            if row is None:
                return None
            fact = fact_from_row(row)
            params = {
                "user_id": UUID(fact.user_id),
                "tenant_id": tenant_id,
                "avatar_id": avatar_id,
                "names": sorted({fact.fact_id, *fact.names}),
            }
            await cursor.execute(EVIDENCE_OF, params)
            evidence = await cursor.fetchall()
            await cursor.execute(VERSIONS_OF, params)
            versions = await cursor.fetchall()
        return FactStory(
            fact=fact,
            evidence=tuple(evidence),
            versions=tuple(_version(one) for one in versions),
        )


def _version(row: Mapping[str, Any]) -> tuple[Mapping[str, object], FactRow]:
    told = {name: value for name, value in row.items() if name != "fact"}
    return told, fact_from_version(row["fact"])


def _cursor(last: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(f"{last['at'].isoformat()} {last['id']}".encode()).decode()


def _position(cursor: str | None) -> tuple[datetime | None, str | None]:
    if cursor is None:
        return None, None
    try:
        time, _, last = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(time), last
    except (ValueError, binascii.Error) as exc:
        raise InvalidInputError("cursor: not one that was given out", field="cursor") from exc
