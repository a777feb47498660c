"""Rows of the outbox: written with their cause, in its transaction."""

from collections.abc import Iterable, Sequence
from typing import Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection

from domain.events import DomainEvent
from domain.outbox import OutboxRecord
from storage.json_text import Row, base64_text, rows_text
from storage.outgoing import Encode

INSERT_RECORDS: Final[LiteralString] = """
    WITH written AS (
        INSERT INTO lis.outbox
            (topic, key, value, header_names, header_values, tenant_id, user_id, available_at)
        SELECT o.topic, decode(o.key, 'base64'), decode(o.value, 'base64'), o.header_names,
               ARRAY(SELECT decode(h.value, 'base64')
                       FROM json_array_elements_text(o.header_values) WITH ORDINALITY AS h (value, place)
                      ORDER BY h.place),
               o.tenant_id, o.user_id, coalesce(o.available_at, now())
          FROM ROWS FROM (json_to_recordset(%(records)s::json) AS
                   (topic text, key text, value text, header_names text[], header_values json,
                    tenant_id text, user_id uuid, available_at timestamptz))
               WITH ORDINALITY AS o (topic, key, value, header_names, header_values, tenant_id, user_id,
                                     available_at, place)
         ORDER BY o.place
    )
    SELECT pg_notify('afterword_outbox', '')
"""


def outbox_rows(
    events: Iterable[DomainEvent], encode: Encode, *, tenant_id: str, user_id: UUID | str
) -> list[Row]:
    """Return the rows of ``events``, in their order."""
    return [record_row(r, tenant_id=tenant_id, user_id=user_id) for event in events for r in encode(event)]


def record_row(
    record: OutboxRecord, *, tenant_id: str | None = None, user_id: UUID | str | None = None
) -> dict[str, object]:
    """Return the row of one ``record``."""
    return {
        "topic": record.topic,
        "key": base64_text(record.key),
        "value": base64_text(record.value),
        "header_names": [name for name, _ in record.headers],
        "header_values": [base64_text(value) for _, value in record.headers],
        "tenant_id": tenant_id,
        "user_id": user_id,
        "available_at": record.available_at,
    }


async def write_records(conn: AsyncConnection, rows: Sequence[Row]) -> None:
    """Insert ``rows`` and wake the relay, both when the transaction of ``conn`` commits."""
    if rows:
        await conn.execute(INSERT_RECORDS, {"records": rows_text(rows)})
