"""Dead letters: a row and a record, once for each place in a topic (docs/architecture/dead-letters.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.dead_letters import tenant_of
from domain.outbox import RawRecord
from domain.ports import Clock
from schemas.headers import Redriven, redriven
from storage.outbox_rows import record_row, write_records
from storage.outgoing import EncodeDeadLetter, Outgoing
from storage.pool import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a record cannot be processed; ``job`` is its tenant and id where a job died of it."""

    error_class: str
    reason: str
    attempts: int
    at: datetime
    job: tuple[str, UUID] | None = None


BURY: Final[LiteralString] = """
    INSERT INTO lis.dead_letters
        (topic, partition, "offset", error_class, reason, attempts, key, value, header_names, header_values,
         sent_at, first_failed_at, tenant_id)
    VALUES
        (%(topic)s, %(partition)s, %(offset)s, %(error_class)s, %(reason)s, %(attempts)s, %(key)s, %(value)s,
         %(header_names)s, %(header_values)s, %(sent_at)s, %(first_failed_at)s, %(letter_tenant)s)
        ON CONFLICT DO NOTHING
"""

# Anybody may write a header; only its bytes and its count make a record the letter that it says to be.
REOPEN: Final[LiteralString] = """
    UPDATE lis.dead_letters AS d
       SET status = 'open', error_class = %(error_class)s, reason = %(reason)s, attempts = %(attempts)s
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
       AND d.status = 'redriven'
       AND d.replays = %(replays)s::int
       AND d.value IS NOT DISTINCT FROM %(value)s::bytea
    RETURNING d.topic, d.partition, d."offset", d.key, d.value, d.header_names, d.header_values, d.sent_at,
              d.first_failed_at, d.replays
"""

REOPEN_OF_JOB: Final[LiteralString] = """
    UPDATE lis.dead_letters AS d
       SET status = 'open', error_class = %(error_class)s, reason = %(reason)s, attempts = %(attempts)s
     WHERE d.tenant_id = %(tenant_id)s
       AND d.job_id = %(job_id)s
       AND d.status = 'redriven'
    RETURNING d.topic, d.partition, d."offset", d.key, d.value, d.header_names, d.header_values, d.sent_at,
              d.first_failed_at, d.replays
"""

KNOWS: Final[LiteralString] = """
    SELECT 1
      FROM lis.dead_letters AS d
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
       AND d.value IS NOT DISTINCT FROM %(value)s::bytea
"""

CLOSE: Final[LiteralString] = """
    UPDATE lis.dead_letters AS d
       SET status = 'closed', closed_at = now()
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
       AND d.status = 'redriven'
       AND d.job_id IS NULL
       AND d.replays = %(replays)s::int
       AND d.value IS NOT DISTINCT FROM %(value)s::bytea
"""


class PostgresDeadLetters:
    """``domain.stores.DeadLetterStore`` and ``consumers.redriven.ClosesLetters``."""

    def __init__(self, database: Database, *, outgoing: Outgoing, clock: Clock) -> None:
        self._database = database
        self._outgoing = outgoing
        self._clock = clock

    async def bury(self, record: RawRecord, *, error_class: str, reason: str, attempts: int) -> bool:
        """Write one row and one dead letter, once for each place in a topic; say whether it was new."""
        async with self._database.transaction() as conn:
            failure = Failure(error_class=error_class, reason=reason, attempts=attempts, at=self._clock.now())
            is_new = await bury(conn, record, failure, self._outgoing.encode_dead_letter)
        self._outgoing.wake()
        return is_new

    async def close(self, record: RawRecord) -> None:
        """Close the letter that ``record`` was redriven from; one with a job is closed by the job's end."""
        origin = redriven(record.headers)
        if origin is None:
            return
        async with self._database.connection() as conn:
            await conn.execute(CLOSE, {**_place(origin), "value": record.value})


async def bury(conn: AsyncConnection, record: RawRecord, failure: Failure, encode: EncodeDeadLetter) -> bool:
    """Write row and letter in the transaction of ``conn``; the primary key makes a repeat harmless.

    A record that was redriven opens its letter again and makes none of its own. Say whether a letter is new.
    """
    origin = redriven(record.headers)
    reopened = await _reopened(conn, record, failure, origin)
    for row in reopened:
        again = RawRecord(**record_fields(row))
        letter = encode(
            again,
            error_class=failure.error_class,
            reason=failure.reason,
            attempts=failure.attempts,
            first_failed_at=row["first_failed_at"],
            replays=row["replays"],
        )
        await write_records(conn, [record_row(letter)])
    if reopened or (origin is not None and await _is_known(conn, record, origin)):
        return False
    return await _bury_first(conn, record, failure, encode)


async def _bury_first(
    conn: AsyncConnection, record: RawRecord, failure: Failure, encode: EncodeDeadLetter
) -> bool:
    cursor = await conn.execute(
        BURY,
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "error_class": failure.error_class,
            "reason": failure.reason,
            "attempts": failure.attempts,
            "key": record.key,
            "value": record.value,
            "header_names": [name for name, _ in record.headers],
            "header_values": [value for _, value in record.headers],
            "sent_at": record.timestamp,
            "first_failed_at": failure.at,
            "letter_tenant": tenant_of(record),
        },
    )
    if cursor.rowcount != 1:
        return False
    letter = encode(
        record,
        error_class=failure.error_class,
        reason=failure.reason,
        attempts=failure.attempts,
        first_failed_at=failure.at,
    )
    await write_records(conn, [record_row(letter)])
    return True


async def _reopened(
    conn: AsyncConnection, record: RawRecord, failure: Failure, origin: Redriven | None
) -> Sequence[Mapping[str, Any]]:
    why = {"error_class": failure.error_class, "reason": failure.reason, "attempts": failure.attempts}
    async with conn.cursor(row_factory=dict_row) as cursor:
        if failure.job is not None:
            # A later attempt of a job is an order without the headers of the first one.
            tenant_id, job_id = failure.job
            await cursor.execute(REOPEN_OF_JOB, {**why, "tenant_id": tenant_id, "job_id": job_id})
            return await cursor.fetchall()
        if origin is None:
            return ()
        await cursor.execute(REOPEN, {**why, **_place(origin), "value": record.value})
        return await cursor.fetchall()


async def _is_known(conn: AsyncConnection, record: RawRecord, origin: Redriven) -> bool:
    """Say whether the letter is there: then this is a late copy, of which everything has been said."""
    cursor = await conn.execute(KNOWS, {**_place(origin), "value": record.value})
    return await cursor.fetchone() is not None


def record_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the record that ``row`` keeps."""
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "key": row["key"],
        "value": row["value"],
        "headers": tuple(zip(row["header_names"], row["header_values"], strict=True)),
        "timestamp": row["sent_at"],
    }


def _place(origin: Redriven) -> dict[str, object]:
    return {
        "topic": origin.topic,
        "partition": origin.partition,
        "offset": origin.offset,
        "replays": origin.replays,
    }
