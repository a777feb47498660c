"""What a command opens of the database, when that is of this release."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from clients.stemming import SnowballStemmer
from domain.errors import InvalidInputError
from domain.recall_tokens import RecallTokenizer
from producers.encoding import Encoder
from schemas.topics import Topics
from service.own_files import vocabulary_of
from service.settings import Settings
from service.wiring import database_of, event_source, rules_of
from storage.condition import condition_of
from storage.generations import PostgresGenerations
from storage.pool import Database, open_database

_CONNECTIONS: Final = 2


@asynccontextmanager
async def opened_database(settings: Settings) -> AsyncGenerator[Database]:
    """Open the database that is set.

    Raises:
        InvalidInputError: none is set, or it is older than this release.
        StorageUnavailableError: it cannot be reached.
    """
    url = database_of(settings).url.get_secret_value()
    if (await condition_of(url)).pending > 0:
        raise InvalidInputError("the database is older than this release: run `afterword migrate`")
    async with open_database(url, min_size=1, max_size=_CONNECTIONS) as database:
        yield database


@asynccontextmanager
async def opened_generations(settings: Settings) -> AsyncGenerator[tuple[Database, PostgresGenerations]]:
    """Open the database and its generations; what they fold, they fold by the operator's own types, too.

    Raises:
        SettingsError: ``MEMORY_TYPES_FILE`` is wrong.
        InvalidInputError: no database is set, or it is older than this release.
        StorageUnavailableError: it cannot be reached.
    """
    vocabulary_of(settings)
    topics = Topics(settings.afterword_topic_prefix)
    async with opened_database(settings) as database:
        yield (
            database,
            PostgresGenerations(
                database,
                encode=Encoder(topics, event_source(topics)),
                tokenizer=RecallTokenizer(stemmer=SnowballStemmer()),
                rules=rules_of(settings),
            ),
        )
