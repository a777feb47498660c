"""The connection pool, and the one border at which errors of the database become errors of the domain."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, LiteralString

import psycopg
import psycopg_pool
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from domain.errors import InvalidInputError, ReadOnlyStoreError, StorageUnavailableError
from storage.time_limits import LimitedConnection, connect_options

Pool = AsyncConnectionPool[LimitedConnection]

BEGIN: Final[LiteralString] = "BEGIN"
COMMIT: Final[LiteralString] = "COMMIT"
SET_ZONE: Final[LiteralString] = "SET TIME ZONE 'UTC'"

_MOST_WAITING: Final = 256
# A pool that gives a connection up tries again when somebody asks for one; one that goes on by itself waits
# twice as long each time, and after an outage of minutes would be late by minutes.
_RECONNECT_S: Final = 3.0
_AWAY: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg_pool.PoolClosed,
    psycopg_pool.TooManyRequests,
)


class ContendedError(StorageUnavailableError):
    """The transaction was given up for another one; nothing was written, and it can be tried at once."""


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raise "the database is away" as ``StorageUnavailableError``, and a value it cannot hold as invalid."""
    try:
        yield
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as exc:
        raise ContendedError(f"the database gave up a transaction: {type(exc).__name__}") from exc
    except psycopg.errors.ReadOnlySqlTransaction as exc:
        raise ReadOnlyStoreError("the database takes no writes") from exc
    except _AWAY as exc:
        raise StorageUnavailableError(_reason(exc)) from exc
    except psycopg.DataError as exc:
        raise InvalidInputError(f"the database cannot hold a value: {type(exc).__name__}") from exc


def _reason(error: Exception) -> str:
    """Say what happened; only the text of a failed connection cannot quote a row."""
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None and str(error):
        return f"the database cannot be reached: {str(error).splitlines()[0]}"
    return f"the database did not take the statement: {type(error).__name__}"


class Database:
    """Hands out connections of a pool; every statement of the repositories goes through here."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def used(self) -> int:
        """How many connections are lent."""
        stats = self._pool.get_stats()
        return stats.get("pool_size", 0) - stats.get("pool_available", 0)

    @property
    def idle(self) -> int:
        """How many connections wait to be lent."""
        return self._pool.get_stats().get("pool_available", 0)

    @property
    def waiting(self) -> int:
        """How many callers wait for a connection."""
        return self._pool.get_stats().get("requests_waiting", 0)

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[AsyncConnection]:
        """Lend a connection in autocommit.

        Raises:
            StorageUnavailableError: no connection came free, or the database did not take a statement.
        """
        with storage_errors():
            async with self._pool.connection() as conn:
                try:
                    yield conn
                except psycopg.errors.ReadOnlySqlTransaction:
                    # It may lead to a server that another one has taken over from, or be of a time now past.
                    await conn.close()
                    raise

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """Lend a connection inside a transaction, which commits when the block ends well."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    @asynccontextmanager
    async def pipeline(self) -> AsyncGenerator[AsyncConnection]:
        """Lend a connection inside a transaction and a pipeline: only fetches and the end wait."""
        async with self.connection() as conn:
            try:
                async with conn.pipeline():
                    await conn.execute(BEGIN)
                    yield conn
                    await conn.execute(COMMIT)
            finally:
                # After a commit there is nothing to roll back; after anything else, nothing was written.
                await conn.rollback()


@asynccontextmanager
async def open_database(
    dsn: str,
    *,
    max_size: int,
    min_size: int = 1,
    timeout: float = 10.0,
    answer_within: float | None = None,
    connection_class: type[LimitedConnection] = LimitedConnection,
) -> AsyncGenerator[Database]:
    """Open a pool on a migrated database and close it at the end.

    ``answer_within`` are the seconds that the server has for each answer; None waits for as long as it takes.

    Raises:
        StorageUnavailableError: no connection could be made within ``timeout`` seconds.
    """

    async def configured(conn: LimitedConnection) -> None:
        conn.answer_within = answer_within
        await _configure(conn)

    pool = AsyncConnectionPool(
        dsn,
        connection_class=connection_class,
        kwargs={"autocommit": True, "prepare_threshold": 0, **connect_options(dsn, answer_within)},
        min_size=min_size,
        max_size=max_size,
        timeout=timeout,
        max_waiting=_MOST_WAITING,
        reconnect_timeout=_RECONNECT_S,
        configure=configured,
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    try:
        with storage_errors():
            await pool.open(wait=True, timeout=timeout)
        yield Database(pool)
    finally:
        await pool.close()


async def _configure(conn: AsyncConnection) -> None:
    await conn.execute(SET_ZONE)
    await register_vector_async(conn)
