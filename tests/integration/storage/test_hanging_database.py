"""A server that is frozen keeps its sockets open and says nothing; nobody waits for it for ever."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import LiteralString

import pytest

from domain.errors import ReadOnlyStoreError, StorageUnavailableError
from storage.condition import require_writes
from storage.outbox import PostgresOutbox
from storage.pool import Database, open_database
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_ANSWER_S = 0.5
_BOUND_S = 20.0


@pytest.fixture
async def limited(own_postgres: PostgresServer, migrated_url: str) -> AsyncGenerator[Database]:
    async with open_database(migrated_url, max_size=2, timeout=2, answer_within=_ANSWER_S) as opened:
        yield opened


@pytest.fixture(autouse=True)
def thawed(own_postgres: PostgresServer) -> Generator[None]:
    """Leave no frozen server to the tests that come after a failure."""
    yield
    own_postgres.thaw()


@pytest.mark.long
async def test_a_pool_is_there_soon_after_an_outage_however_long_that_was(
    own_postgres: PostgresServer, migrated_url: str
) -> None:
    async with open_database(migrated_url, max_size=1, timeout=1) as database:

        async def asks() -> None:
            async with database.connection() as conn:
                await conn.execute("SELECT 1")

        await asks()
        await own_postgres.end()
        try:
            # A pool that doubles its pauses tries about 1, 3, 7, 15 and 31 seconds after the loss.
            async with asyncio.timeout(60):
                for _ in range(16):
                    await _fails(asks)
        finally:
            await own_postgres.restart()

        async with asyncio.timeout(5.0):
            while not await _succeeds(asks):
                pass


async def _succeeds(asks: Callable[[], Awaitable[None]]) -> bool:
    try:
        await asks()
    except StorageUnavailableError:
        return False
    return True


async def _fails(asks: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(StorageUnavailableError):
        await asks()


async def test_a_statement_and_a_transaction_end_and_the_pool_works_again_after_it(
    limited: Database, own_postgres: PostgresServer
) -> None:
    async with asyncio.timeout(_BOUND_S):
        async with limited.transaction() as conn:
            await conn.execute("CREATE TABLE lis.kept (n int)")
        with pytest.raises(StorageUnavailableError):
            await _written(limited, "INSERT INTO lis.kept VALUES (1)", own_postgres.freeze)
        with pytest.raises(StorageUnavailableError):
            await _written(limited, "INSERT INTO lis.kept VALUES (2)")
        own_postgres.thaw()
        async with limited.connection() as conn:
            rows = await (await conn.execute("SELECT n FROM lis.kept")).fetchall()

    assert rows == []


async def test_what_takes_long_while_the_server_lives_is_not_mistaken_for_silence(limited: Database) -> None:
    async with limited.transaction() as conn:
        for _ in range(4):
            await conn.execute("SELECT pg_sleep(0.2)")


async def test_the_relay_loses_its_lead_and_gets_it_again(
    own_postgres: PostgresServer, migrated_url: str
) -> None:
    outbox = PostgresOutbox(migrated_url, answer_within=_ANSWER_S)
    try:
        assert await outbox.lead()
        own_postgres.freeze()
        async with asyncio.timeout(_BOUND_S):
            with pytest.raises(StorageUnavailableError):
                await outbox.turn([])
        own_postgres.thaw()
        async with asyncio.timeout(_BOUND_S):
            while not await outbox.lead():
                await asyncio.sleep(0.05)
    finally:
        await outbox.resign()


async def test_a_look_says_that_it_does_not_answer(own_postgres: PostgresServer, migrated_url: str) -> None:
    own_postgres.freeze()
    try:
        async with asyncio.timeout(_BOUND_S):
            with pytest.raises(StorageUnavailableError):
                await require_writes(migrated_url, answer_within=2)
    finally:
        own_postgres.thaw()

    await require_writes(migrated_url, answer_within=5)


async def test_a_connection_that_met_a_database_without_writes_is_not_used_again(limited: Database) -> None:
    async with limited.connection() as conn:
        first = conn
        await conn.execute("SET default_transaction_read_only = on")

    with pytest.raises(ReadOnlyStoreError):
        await _written(limited, "DELETE FROM lis.outbox")

    async with limited.transaction() as conn:
        assert conn is not first
        await conn.execute("DELETE FROM lis.outbox")


async def _written(
    database: Database, statement: LiteralString, between: Callable[[], None] = lambda: None
) -> None:
    """Run ``statement`` twice in one transaction, and ``between`` in the middle."""
    async with database.transaction() as conn:
        await conn.execute(statement)
        between()
        await conn.execute(statement)
