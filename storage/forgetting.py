"""Forget a fact as the gateway does: by its status; a trigger notes the command and orders the fold."""

from typing import Final, LiteralString
from uuid import UUID

from storage.outgoing import Outgoing
from storage.pool import Database

FORGET: Final[LiteralString] = """
    UPDATE lis.memory_facts
       SET status = 'deleted',
           deleted_at = now()
     WHERE tenant_id = %(tenant_id)s
       AND fact_id = %(fact_id)s
       AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
       AND status <> 'deleted'
"""


class PostgresForgetting:
    """Hides a fact and what was said for it up to now, in the statement that the gateway uses too."""

    def __init__(self, database: Database, *, outgoing: Outgoing) -> None:
        self._database = database
        self._outgoing = outgoing

    async def __call__(self, tenant_id: str, fact_id: UUID, user_id: UUID | None) -> bool:
        """Forget the fact; say whether the tenant had one that was not forgotten yet."""
        async with self._database.connection() as conn:
            params = {"tenant_id": tenant_id, "fact_id": fact_id, "user_id": user_id}
            cursor = await conn.execute(FORGET, params)
        self._outgoing.wake()
        return cursor.rowcount > 0
