"""Fixtures of the extraction tests: the use case on the real database, with scripted models."""

from collections.abc import AsyncGenerator

import pytest

from storage.pool import Database, open_database
from tests.integration.storage.stores import Stores


@pytest.fixture
async def database(migrated_url: str) -> AsyncGenerator[Database]:
    # One connection: whoever kept it while a model answers would stop everything here.
    async with open_database(migrated_url, min_size=1, max_size=1) as opened:
        yield opened


@pytest.fixture
def stores(database: Database) -> Stores:
    return Stores(database=database)
