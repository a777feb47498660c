"""What is in the tables of the service, seen from outside of it."""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from tests.support.publishing import until

_FINAL: Final = ["completed", "gated", "dead", "conflict", "passthrough"]

# Everything but what the moment of writing decides.
_FACTS: Final = """
SELECT tenant_id, user_id, avatar_id, fact_id, category, fact_key, fact_value, content, confidence, status,
       source_session_id, source_excerpt, source_message_ids, dedup_hash, slot, mode, norm, importance,
       reinforced, first_said_at, last_said_at, valid::text, valid_from, valid_to, expires_at, superseded_by,
       merged_into, names, asserted_by, extraction_method, spec_version, deleted_at IS NOT NULL AS is_deleted
  FROM lis.memory_facts
 ORDER BY tenant_id, user_id, avatar_id, fact_id"""
_PENDING: Final = """
SELECT tenant_id, user_id, avatar_id, candidate_id, slot, mode, value, confidence, sessions
  FROM lis.pending_candidates
 ORDER BY tenant_id, user_id, avatar_id, candidate_id"""
_ASSERTIONS: Final = """
SELECT tenant_id, user_id, avatar_id, assertion_id, session_id, generation, position, said_at, slot, value,
       stance, confidence, claim_id
  FROM lis.assertions
 ORDER BY tenant_id, user_id, avatar_id, assertion_id"""
_JOBS: Final = """
SELECT tenant_id, session_id, generation, status, revision, gate, attempts, outcome, error
  FROM lis.extraction_jobs
 ORDER BY tenant_id, session_id, generation"""
_SETTLED: Final = """
SELECT (SELECT count(*) FROM lis.extraction_jobs WHERE status = ANY(%(final)s)) >= %(sessions)s
   AND NOT EXISTS (SELECT 1 FROM lis.extraction_jobs WHERE status <> ALL(%(final)s))
   AND NOT EXISTS (SELECT 1 FROM lis.outbox)"""
_FINISHED: Final = "SELECT count(*) FROM lis.extraction_jobs WHERE status = ANY(%(final)s)"
_WORDS: Final = """
SELECT format('SELECT %%L, t::text FROM %%I.%%I AS t WHERE t::text ILIKE %%L',
              c.relname, n.nspname, c.relname, %(pattern)s::text)
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'lis' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""

Row = Mapping[str, Any]


@asynccontextmanager
async def looking(database_url: str) -> AsyncGenerator["Tables"]:
    """Give the tables behind ``database_url``."""
    tables = Tables(database_url, await _connected(database_url))
    try:
        yield tables
    finally:
        await tables.close()


async def _connected(database_url: str) -> "AsyncConnection[dict[str, Any]]":
    return await AsyncConnection[dict[str, Any]].connect(database_url, autocommit=True, row_factory=dict_row)


class Tables:
    """Reads the tables."""

    def __init__(self, database_url: str, connection: "AsyncConnection[dict[str, Any]]") -> None:
        self._url = database_url
        self._connection = connection

    async def close(self) -> None:
        """Look no more."""
        await self._connection.close()

    async def reconnect(self) -> None:
        """Look again at a database that was killed."""
        await self.close()
        self._connection = await _connected(self._url)

    async def rows(self, statement: LiteralString, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Return the rows of ``statement``."""
        cursor = await self._connection.execute(statement, params)
        return list(await cursor.fetchall())

    async def facts(self, *, status: str | None = None, user_id: UUID | None = None) -> list[Row]:
        """Return the facts, without what the moment of writing decides."""
        return [
            row
            for row in await self.rows(_FACTS)
            if (status is None or row["status"] == status) and (user_id is None or row["user_id"] == user_id)
        ]

    async def memory(self) -> Mapping[str, Sequence[Row]]:
        """Return facts, candidates and assertions: everything that two playings must agree in."""
        return {
            "facts": await self.facts(),
            "pending": await self.rows(_PENDING),
            "assertions": await self.rows(_ASSERTIONS),
        }

    async def jobs(self, sessions: Collection[UUID] | None = None) -> list[Row]:
        """Return the jobs, of all sessions or of ``sessions``."""
        rows = await self.rows(_JOBS)
        return [row for row in rows if sessions is None or row["session_id"] in sessions]

    async def statuses(self) -> Counter[str]:
        """Count the jobs by status, gated ones by their gate."""
        return Counter(row["gate"] or row["status"] for row in await self.jobs())

    async def finished(self) -> int:
        """Count the jobs that have ended."""
        rows = await self.rows(_FINISHED, {"final": _FINAL})
        return int(rows[0]["count"])

    async def settled(self, sessions: int, *, within: float) -> None:
        """Return when ``sessions`` jobs and all others have ended and nothing waits to leave."""

        async def is_settled() -> bool:
            params = {"final": _FINAL, "sessions": sessions}
            cursor = await self._connection.execute(_SETTLED, params)
            row = await cursor.fetchone()
            return row is not None and all(row.values())

        await until(is_settled, within=within, what=f"{sessions} jobs ended, outbox empty", every=0.1)

    async def mentions(self, words: str, *, but: Collection[str] = ()) -> list[str]:
        """Name the tables where ``words`` stand in any row."""
        found: list[str] = []
        for row in await self.rows(_WORDS, {"pattern": f"%{words}%"}):
            statement = next(iter(row.values()))
            cursor = await self._connection.execute(statement)
            hits = await cursor.fetchall()
            found += [str(next(iter(hit.values()))) for hit in hits]
        return sorted({table for table in found if table not in but})
