"""Summaries of conversations: read from what is stored of one, kept beside the facts and never among them."""

from typing import Final, LiteralString
from uuid import uuid5

from psycopg.rows import dict_row

from domain.events import MemoryNoticed
from domain.jobs import JobOrder
from domain.summaries import Told
from storage.outbox_rows import outbox_rows, write_records
from storage.outgoing import Outgoing
from storage.pool import Database

_READ_TOLD: Final[LiteralString] = """
    SELECT s.ended_at,
           coalesce(k.message_count, 0) AS summarised,
           ARRAY(SELECT m.role || ' ' || m.content
                   FROM lis.chat_messages AS m
                  WHERE m.user_id = s.user_id AND m.tenant_id = s.tenant_id AND m.avatar_id = s.avatar_id
                    AND m.session_id = s.session_id
                  ORDER BY m.position, m.message_id) AS said,
           ARRAY(SELECT f.content
                   FROM lis.memory_facts AS f
                  WHERE f.user_id = s.user_id AND f.tenant_id = s.tenant_id AND f.avatar_id = s.avatar_id
                    AND f.status = 'active' AND f.merged_into IS NULL
                    AND f.names && ARRAY(
                            SELECT a.claim_id
                              FROM lis.assertions AS a
                             WHERE a.user_id = s.user_id AND a.tenant_id = s.tenant_id
                               AND a.avatar_id = s.avatar_id AND a.session_id = s.session_id
                               AND a.generation = s.serving_generation)
                  ORDER BY f.importance DESC, f.first_said_at, f.fact_id) AS facts
      FROM lis.sessions AS s
      LEFT JOIN lis.conversation_summaries AS k
        ON k.user_id = s.user_id AND k.tenant_id = s.tenant_id AND k.avatar_id = s.avatar_id
       AND k.session_id = s.session_id
     WHERE s.tenant_id = %(tenant_id)s
       AND s.user_id = %(user_id)s
       AND s.avatar_id = %(avatar_id)s
       AND s.session_id = %(session_id)s
       AND s.ended_at IS NOT NULL
"""

# A summary of fewer messages comes late, from a worker that was overtaken.
_PUT_SUMMARY: Final[LiteralString] = """
    INSERT INTO lis.conversation_summaries AS k
        (user_id, tenant_id, avatar_id, session_id, summary, method, message_count, ended_at)
    VALUES (%(user_id)s, %(tenant_id)s, %(avatar_id)s, %(session_id)s, %(summary)s, 'extract',
            %(message_count)s, %(ended_at)s)
        ON CONFLICT (user_id, tenant_id, avatar_id, session_id) DO UPDATE
       SET summary = excluded.summary, method = excluded.method, message_count = excluded.message_count,
           ended_at = excluded.ended_at, stored_at = now()
     WHERE k.message_count < excluded.message_count
    RETURNING k.session_id
"""

_USER: Final = "user "


class PostgresSummaries:
    """Reads what a summary is made of, and keeps it with its event."""

    def __init__(self, database: Database, *, outgoing: Outgoing) -> None:
        self._database = database
        self._outgoing = outgoing

    async def told(self, order: JobOrder) -> Told | None:
        """Return the conversation of ``order``; None where it is not there any more."""
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_READ_TOLD, _owner(order))
            row = await cursor.fetchone()
        if row is None:
            return None
        said = (one.removeprefix(_USER) for one in row["said"] if one.startswith(_USER))
        return Told(
            said=tuple(said),
            facts=tuple(row["facts"]),
            message_count=len(row["said"]),
            ended_at=row["ended_at"],
            summarised=row["summarised"],
        )

    async def keep(self, order: JobOrder, told: Told, summary: str) -> bool:
        """Store ``summary`` and tell so; say whether it was newer than what was there."""
        params = {
            **_owner(order),
            "summary": summary,
            "message_count": told.message_count,
            "ended_at": told.ended_at,
        }
        async with self._database.transaction() as conn:
            cursor = await conn.execute(_PUT_SUMMARY, params)
            if await cursor.fetchone() is None:
                return False
            rows = outbox_rows(
                [_stored(order, told)],
                self._outgoing.encode,
                tenant_id=order.tenant_id,
                user_id=order.user_id,
            )
            await write_records(conn, rows)
        self._outgoing.wake()
        return True


def _stored(order: JobOrder, told: Told) -> MemoryNoticed:
    return MemoryNoticed(
        event_id=uuid5(order.job_id, f"summary:{told.message_count}"),
        kind="summary.stored",
        scope=order.scope,
        ids=(("session_id", str(order.session_id)),),
        session_id=order.session_id,
        job_id=order.job_id,
        traceparent=order.traceparent,
        correlation_id=order.correlation_id,
    )


def _owner(order: JobOrder) -> dict[str, object]:
    return {
        "tenant_id": order.tenant_id,
        "user_id": order.user_id,
        "avatar_id": order.avatar_id,
        "session_id": order.session_id,
    }
