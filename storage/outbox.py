"""The outbox as the relay reads it: by one leader, in the order of ids, deleted after it was sent."""

import asyncio
from collections.abc import Sequence
from typing import Final, LiteralString

from psycopg import AsyncConnection

from domain.outbox import OutboxRecord, WaitingRecord
from storage.pool import Database, storage_errors
from storage.time_limits import connected

_LEADER_KEY: Final = 7_204_113_551
_MOST_ROWS: Final = 500
_MOST_LATER: Final = 100

TRY_LEAD: Final[LiteralString] = "SELECT pg_try_advisory_lock(%(key)s)"
STILL_THERE: Final[LiteralString] = "SELECT 1"
LISTEN: Final[LiteralString] = "LISTEN afterword_outbox"
# A lost delete is a record sent twice, which readers drop; on this connection alone.
NO_SYNC: Final[LiteralString] = "SET synchronous_commit = off"

# Rows that wait for their time have indexes of their own, so that however many wait, none is passed over; and
# what has come due of them, which has no order to keep, takes a part of a turn at most.
TURN: Final[LiteralString] = """
    WITH gone AS (
        DELETE FROM lis.outbox
         WHERE id = ANY (%(done)s::bigint[])
    ), due AS (
        (SELECT id, topic, key, value, header_names, header_values
           FROM lis.outbox
          WHERE available_at <= written_at
            AND id <> ALL (%(done)s::bigint[])
          ORDER BY id
          LIMIT %(most)s)
        UNION ALL
        (SELECT id, topic, key, value, header_names, header_values
           FROM lis.outbox
          WHERE available_at > written_at
            AND available_at <= now()
            AND id <> ALL (%(done)s::bigint[])
          ORDER BY available_at
          LIMIT %(most_later)s)
    )
    SELECT id, topic, key, value, header_names, header_values
      FROM due
     ORDER BY id
"""


BACKLOG: Final[LiteralString] = """
    SELECT count(*),
           coalesce(extract(epoch FROM now() - min(available_at)), 0)::float8
      FROM (SELECT available_at
              FROM lis.outbox
             WHERE available_at <= now()
             ORDER BY id
             LIMIT 10000) AS due
"""


async def backlog(database: Database) -> tuple[int, float]:
    """Return how many records are due, 10,000 at most, and the seconds that the oldest of them has waited."""
    async with database.connection() as conn:
        row = await (await conn.execute(BACKLOG)).fetchone()
    return (row[0], row[1]) if row is not None else (0, 0.0)


class PostgresOutbox:
    """``producers.outbox_relay.OutboxSource`` on one direct connection, whose advisory lock is the lead.

    ``notify`` wakes a waiting relay of this process at once; a commit of another process wakes it through the
    database, and a wait ends by itself. ``answer_within`` are the seconds for each answer of it.
    """

    def __init__(self, direct_dsn: str, *, answer_within: float | None = None) -> None:
        self._dsn = direct_dsn
        self._answer_within = answer_within
        self._conn: AsyncConnection | None = None
        self._is_leading = False
        self._woken = asyncio.Event()

    def notify(self) -> None:
        """Wake the relay: something was committed here."""
        self._woken.set()

    async def lead(self) -> bool:
        """Take the lead or keep it; say whether it is ours.

        Raises:
            StorageUnavailableError: nobody knows; whoever led has lost it.
        """
        try:
            with storage_errors():
                conn = await self._connected()
                if self._is_leading:
                    await conn.execute(STILL_THERE)
                else:
                    cursor = await conn.execute(TRY_LEAD, {"key": _LEADER_KEY})
                    row = await cursor.fetchone()
                    self._is_leading = row is not None and bool(row[0])
                return self._is_leading
        except BaseException:
            await self._forget()
            raise

    async def turn(self, done: Sequence[int]) -> Sequence[WaitingRecord]:
        """Delete the rows ``done`` and return the due ones that come next, by id, 500 at most.

        Raises:
            StorageUnavailableError: the rows ``done`` may still be there.
        """
        try:
            with storage_errors():
                conn = await self._connected()
                params = {"done": list(done), "most": _MOST_ROWS, "most_later": _MOST_LATER}
                cursor = await conn.execute(TURN, params, binary=True)
                rows = await cursor.fetchall()
        except BaseException:
            await self._forget()
            raise
        return [_waiting(*row) for row in rows]

    async def wait(self, seconds: float) -> None:
        """Return when rows may have come, or after ``seconds``."""
        conn = self._conn
        if conn is None:
            await asyncio.sleep(seconds)
            return
        listening = asyncio.create_task(self._heard(conn, seconds))
        waking = asyncio.create_task(self._woken.wait())
        try:
            await asyncio.wait((listening, waking), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._woken.clear()
            waking.cancel()
            listening.cancel()
            await asyncio.gather(listening, waking, return_exceptions=True)

    async def resign(self) -> None:
        """Give the lead away, and the connection that holds it."""
        await self._forget()

    async def _connected(self) -> AsyncConnection:
        if self._conn is None:
            conn = await connected(self._dsn, answer_within=self._answer_within, prepare_threshold=0)
            self._conn = conn
            await conn.execute(NO_SYNC)
            await conn.execute(LISTEN)
        return self._conn

    async def _heard(self, conn: AsyncConnection, seconds: float) -> None:
        with storage_errors():
            async for _ in conn.notifies(timeout=seconds, stop_after=1):
                return

    async def _forget(self) -> None:
        conn, self._conn, self._is_leading = self._conn, None, False
        if conn is not None:
            await conn.close()


def _waiting(
    number: int,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    names: list[str],
    values: list[bytes],
) -> WaitingRecord:
    headers = tuple(zip(names, values, strict=True))
    return WaitingRecord(id=number, record=OutboxRecord(topic=topic, key=key, value=value, headers=headers))
