"""What condition a database is in, for whoever sets one up."""

from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg import AsyncConnection

from domain.errors import ReadOnlyStoreError
from storage.migrate import load_migrations
from storage.pool import storage_errors
from storage.time_limits import connected

_OLDEST_SERVER: Final = 150_000
_OLDEST_VECTOR: Final = (0, 7)

LOOK_AT_DATABASE: Final[LiteralString] = """
    SELECT current_setting('server_version_num')::int,
           current_setting('server_version'),
           (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
           pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
           to_regclass('lis.schema_migrations') IS NOT NULL
"""
TAKES_NO_WRITES: Final[LiteralString] = """
    SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'
"""
COUNT_APPLIED: Final[LiteralString] = "SELECT count(*) FROM lis.schema_migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCondition:
    """What was found: versions, whether it takes writes, and how many migrations are to be applied."""

    described: str
    is_new_enough: bool
    is_read_only: bool
    pending: int


async def condition_of(dsn: str) -> DatabaseCondition:
    """Look at the database.

    Raises:
        StorageUnavailableError: it cannot be reached.
    """
    with storage_errors():
        async with await AsyncConnection.connect(dsn, autocommit=True) as conn:
            row = await (await conn.execute(LOOK_AT_DATABASE)).fetchone()
            number, text, vector, is_read_only, has_ledger = (
                row if row is not None else (0, "", None, False, False)
            )
            counted = await (await conn.execute(COUNT_APPLIED)).fetchone() if has_ledger else None
    applied = counted[0] if counted is not None else 0
    return DatabaseCondition(
        described=f"PostgreSQL {text}, pgvector {vector or 'missing'}, {applied} migrations applied",
        is_new_enough=number >= _OLDEST_SERVER and _version(vector) >= _OLDEST_VECTOR,
        is_read_only=is_read_only,
        pending=len(load_migrations()) - applied,
    )


async def require_writes(dsn: str, *, answer_within: float) -> None:
    """Return when a new connection finds a database that takes writes.

    Raises:
        ReadOnlyStoreError: it takes none: a standby, or one that was told to.
        StorageUnavailableError: it cannot be reached, or does not answer within ``answer_within`` seconds.
    """
    with storage_errors():
        conn = await connected(dsn, answer_within=answer_within)
        try:
            row = await (await conn.execute(TAKES_NO_WRITES)).fetchone()
        finally:
            await conn.close()
    if row is None or row[0]:
        raise ReadOnlyStoreError("the database takes no writes")


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or "0").split(".")[:2] if part.isdigit())
