"""Fixtures of the storage tests."""

from collections.abc import AsyncGenerator, Generator

import pytest

from storage.pool import Database, open_database
from tests.integration.storage.stores import Stores
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="module")
def migrated_module_url(postgres: PostgresServer, migrated_template: str) -> Generator[str]:
    """The address of a migrated database that the tests of one module share."""
    url = postgres.create_database(template=migrated_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture
async def database(migrated_url: str) -> AsyncGenerator[Database]:
    async with open_database(migrated_url, max_size=6) as opened:
        yield opened


@pytest.fixture
def stores(database: Database) -> Stores:
    return Stores(database=database)


@pytest.fixture
async def own_stores(postgres: PostgresServer, migrated_template: str) -> AsyncGenerator[Stores]:
    """The repositories on a second database."""
    url = postgres.create_database(template=migrated_template)
    async with open_database(url, max_size=6) as opened:
        yield Stores(database=opened)
    postgres.drop_database(url)
