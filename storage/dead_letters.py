"""Dead letters: a row and a record, once for each place in a topic."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from psycopg import AsyncConnection

from domain.outbox import RawRecord
from domain.ports import Clock
from storage.outbox_rows import record_row, write_records
from storage.outgoing import EncodeDeadLetter, Outgoing
from storage.pool import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a record cannot be processed."""

    error_class: str
    reason: str
    attempts: int
    at: datetime


BURY: Final[LiteralString] = """
    INSERT INTO lis.dead_letters
        (topic, partition, "offset", error_class, reason, attempts, key, value, header_names, header_values,
         sent_at, first_failed_at)
    VALUES
        (%(topic)s, %(partition)s, %(offset)s, %(error_class)s, %(reason)s, %(attempts)s, %(key)s, %(value)s,
         %(header_names)s, %(header_values)s, %(sent_at)s, %(first_failed_at)s)
        ON CONFLICT DO NOTHING
"""


class PostgresDeadLetters:
    """``domain.stores.DeadLetterStore``."""

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


async def bury(conn: AsyncConnection, record: RawRecord, failure: Failure, encode: EncodeDeadLetter) -> bool:
    """Write row and letter in the transaction of ``conn``; the primary key makes a repeat harmless."""
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
