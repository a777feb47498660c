"""Migrations and the embedder of a database."""

import asyncio
from dataclasses import replace

import pytest
from psycopg import AsyncConnection

from domain.errors import StorageUnavailableError
from domain.ports import EmbedderInfo
from storage.embedders import EmbedderMismatchError, require_embedder
from storage.migrate import MigrationChangedError, load_migrations, migrate
from storage.pool import Database, open_database

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

SMALL = EmbedderInfo(model="small", dimensions=512, near_duplicate_distance=0.1, max_chars=1000)


async def test_four_replicas_that_start_at_once_all_become_ready(database_url: str) -> None:
    applied = await asyncio.gather(*(migrate(database_url, topic_prefix="p.") for _ in range(4)))

    assert sorted(len(one) for one in applied) == [0, 0, 0, len(load_migrations())]
    async with open_database(database_url, max_size=1) as database, database.connection() as conn:
        cursor = await conn.execute("SELECT topic_prefix FROM lis.installation")
        assert await cursor.fetchone() == ("p.",)


async def test_a_changed_migration_is_refused(migrated_url: str) -> None:
    async with await AsyncConnection.connect(migrated_url, autocommit=True) as conn:
        await conn.execute("UPDATE lis.schema_migrations SET checksum = 'other' WHERE version = 2")

    with pytest.raises(MigrationChangedError, match="0002"):
        await migrate(migrated_url)


async def test_vectors_of_another_embedder_stop_the_start(database: Database) -> None:
    await require_embedder(database, SMALL)
    await require_embedder(database, SMALL)

    with pytest.raises(EmbedderMismatchError, match="afterword reembed"):
        await require_embedder(database, replace(SMALL, dimensions=768))


async def test_a_database_that_is_away_is_unavailable() -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(StorageUnavailableError):
        async with open_database(nowhere, max_size=1, timeout=0.5):
            pass
    with pytest.raises(StorageUnavailableError):
        await migrate(nowhere)
