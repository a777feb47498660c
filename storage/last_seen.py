"""When a fact was last put into a prompt: stamped in batches, off the path of a reply."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from storage.json_text import rows_text
from storage.pool import Database

STAMP: Final[LiteralString] = """
    UPDATE lis.memory_facts AS f
       SET last_seen_at = %(at)s
      FROM (SELECT h.user_id, h.tenant_id, h.avatar_id, h.fact_id
              FROM json_to_recordset(%(seen)s::json) AS s (user_id uuid, fact_id uuid)
              JOIN lis.memory_facts AS h ON h.user_id = s.user_id AND h.fact_id = s.fact_id
             WHERE h.last_seen_at IS NULL OR h.last_seen_at < %(at)s
             ORDER BY h.user_id, h.fact_id
               FOR UPDATE OF h SKIP LOCKED) AS t
     WHERE f.user_id = t.user_id
       AND f.tenant_id = t.tenant_id
       AND f.avatar_id = t.avatar_id
       AND f.fact_id = t.fact_id
"""


class PostgresLastSeen:
    """``domain.stores.LastSeen``; a fact that a commit holds keeps its older stamp instead of waiting."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stamp(self, seen: Mapping[UUID, Collection[UUID]], *, at: datetime) -> None:
        """Set ``last_seen_at`` of the facts of each user."""
        rows = [
            {"user_id": user_id, "fact_id": fact_id} for user_id, facts in seen.items() for fact_id in facts
        ]
        if not rows:
            return
        async with self._database.connection() as conn:
            await conn.execute(STAMP, {"seen": rows_text(rows), "at": at})
