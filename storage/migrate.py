"""Apply the numbered migrations: one transaction each, one process at a time, never a changed file."""

from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Final, LiteralString

from psycopg import AsyncConnection

from domain.errors import PermanentError
from storage.pool import storage_errors

_LOCK_KEY: Final = 7_204_113_550

LOCK: Final[LiteralString] = "SELECT pg_advisory_lock(%(key)s)"
UNLOCK: Final[LiteralString] = "SELECT pg_advisory_unlock(%(key)s)"

CREATE_LEDGER: Final[LiteralString] = """
    CREATE SCHEMA IF NOT EXISTS lis;
    CREATE TABLE IF NOT EXISTS lis.schema_migrations (
        version int PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""

READ_LEDGER: Final[LiteralString] = """
    SELECT version, checksum
      FROM lis.schema_migrations
"""

NOTE_MIGRATION: Final[LiteralString] = """
    INSERT INTO lis.schema_migrations (version, name, checksum)
    VALUES (%(version)s, %(name)s, %(checksum)s)
"""

SET_TOPIC_PREFIX: Final[LiteralString] = """
    UPDATE lis.installation
       SET topic_prefix = %(prefix)s
     WHERE topic_prefix <> %(prefix)s
"""


class MigrationChangedError(PermanentError):
    """An applied migration differs from the file of the same number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file of the migrations folder."""

    version: int
    name: str
    sql: LiteralString

    @property
    def checksum(self) -> str:
        """Digest of the statements."""
        return sha256(self.sql.encode()).hexdigest()


def load_migrations() -> list[Migration]:
    """Return the migrations of the package, oldest first."""
    files = [f for f in resources.files("storage.migrations").iterdir() if f.name.endswith(".sql")]
    return [_migration(f.name, f.read_text(encoding="utf-8")) for f in sorted(files, key=lambda f: f.name)]


async def migrate(direct_dsn: str, *, topic_prefix: str = "") -> list[Migration]:
    """Bring the database up to date and return what was applied; of several at once, one works.

    ``direct_dsn`` goes past a pooler: the lock belongs to the connection.

    Raises:
        MigrationChangedError: an applied migration is not the file of its number any more.
        StorageUnavailableError: the database is away.
    """
    with storage_errors():
        async with await AsyncConnection.connect(direct_dsn, autocommit=True) as conn:
            await conn.execute(LOCK, {"key": _LOCK_KEY})
            try:
                applied = await _apply_pending(conn)
                await conn.execute(SET_TOPIC_PREFIX, {"prefix": topic_prefix})
                return applied
            finally:
                await conn.execute(UNLOCK, {"key": _LOCK_KEY})


async def _apply_pending(conn: AsyncConnection) -> list[Migration]:
    await conn.execute(CREATE_LEDGER)
    cursor = await conn.execute(READ_LEDGER)
    known: dict[int, str] = dict(await cursor.fetchall())
    applied: list[Migration] = []
    for migration in load_migrations():
        if migration.version not in known:
            await _apply(conn, migration)
            applied.append(migration)
        elif known[migration.version] != migration.checksum:
            raise MigrationChangedError(f"migration {migration.version:04}_{migration.name} was changed")
    return applied


async def _apply(conn: AsyncConnection, migration: Migration) -> None:
    async with conn.transaction():
        await conn.execute(migration.sql)
        await conn.execute(
            NOTE_MIGRATION,
            {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
        )


def _migration(file_name: str, text: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(version=int(number), name=name, sql=_literal(text))


def _literal(text: str) -> LiteralString:
    # The text ships with the package: it is as much a literal as the code is.
    return text  # pyright: ignore[reportReturnType]
