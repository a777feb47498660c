"""What the roles of one process share: names, adapters and connections, closed at the end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, Self, TypeVar

import httpx
from prometheus_client import CollectorRegistry

from clients.endpoint import open_client
from clients.stemming import SnowballStemmer
from domain.errors import InfrastructureError
from domain.recall_tokens import RecallTokenizer
from producers.connection import KafkaConnection, Producer, ProducerSettings
from producers.dead_letters import DeadLetterEncoder
from producers.encoding import Encoder
from schemas.topics import Topics
from service.connections import DatabaseConnection
from service.settings import Settings
from service.wiring import (
    ServiceEmbedder,
    SystemClock,
    broker_of,
    database_of,
    embedder_of,
    event_source,
    stop_budget,
    worker_name,
)
from storage.embedders import require_embedder
from storage.outbox import PostgresOutbox
from storage.outgoing import Outgoing
from storage.pool import Database, open_database
from telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

T = TypeVar("T")

READ: Final = "read"
WRITE: Final = "write"
_READ_S: Final = 5.0
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 10.0


class Surroundings:
    """Holds what is shared; an async context manager that closes what it opened, in reverse order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.broker: KafkaConnection = broker_of(settings)
        self.database: DatabaseConnection = database_of(settings)
        self.topics = Topics(settings.afterword_topic_prefix)
        self.metrics = Metrics(CollectorRegistry())
        self.clock = SystemClock()
        self.worker = worker_name(settings)
        self.tokenizer = RecallTokenizer(stemmer=SnowballStemmer())
        self.outbox = PostgresOutbox(
            self.database.direct_url.get_secret_value(), answer_within=settings.db_answer_sec
        )
        self.outgoing = Outgoing(
            encode=Encoder(self.topics, event_source(self.topics)),
            encode_dead_letter=DeadLetterEncoder(self.topics),
            wake=self.outbox.notify,
        )
        self._exit = AsyncExitStack()
        self.pools: dict[str, Database] = {}
        self._http: httpx.AsyncClient | None = None
        self._embedder: ServiceEmbedder | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(stop_budget(self.settings).closing):
                await self._exit.aclose()
        except TimeoutError:
            logger.warning("connections could not be closed in time")

    async def pool(self, name: str) -> Database:
        """Return the pool called ``name``, opening it on first use; a database that is away is waited for."""
        if name not in self.pools:
            self.pools[name] = await when_there("the database", lambda: self._opened(name))
        return self.pools[name]

    async def _opened(self, name: str) -> Database:
        settings = self.settings
        # Whoever reads for a prompt has moved on by then.
        longest = _READ_S if name == READ else settings.db_answer_sec
        opening = open_database(
            self.database.url.get_secret_value(),
            max_size=settings.db_pool_max,
            timeout=longest,
            answer_within=min(settings.db_answer_sec, longest),
        )
        return await self._exit.enter_async_context(opening)

    async def http(self) -> httpx.AsyncClient:
        """Return the HTTP client for models and embedders."""
        if self._http is None:
            connections = self.settings.afterword_jobs_in_flight + 16
            self._http = await self._exit.enter_async_context(open_client(connections=connections))
        return self._http

    async def embedder(self) -> ServiceEmbedder:
        """Return the embedder of this process, started; it must be that of the database.

        Raises:
            ConflictError: the stored vectors are of another one.
        """
        if self._embedder is None:
            embedder = embedder_of(self.settings, await self.http())
            pool = await self.pool(WRITE if WRITE in self.pools else READ)
            await when_there("the stored embedder", lambda: require_embedder(pool, embedder.info))
            self.at_end(embedder.aclose)
            await embedder.start()
            self._embedder = embedder
        return self._embedder

    def producer(self, *, linger_ms: int) -> Producer:
        """Return a producer that connects when it is first used, and is stopped at the end."""
        idempotent = self.settings.afterword_kafka_idempotence
        producer = Producer(
            self.broker,
            ProducerSettings(idempotent=idempotent, linger_ms=linger_ms),
            on_rebuilt=self.metrics.producer_rebuilds.inc,
        )
        self.at_end(producer.stop)
        return producer

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call ``close`` when this process ends."""
        self._exit.push_async_callback(close)


async def when_there(what: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return what ``attempt`` gives once database and broker are there; say once what is waited for."""
    wait = _FIRST_WAIT_S
    is_told = False
    while True:
        try:
            return await attempt()
        except InfrastructureError as error:
            if not is_told:
                logger.warning("waiting for %s: %s", what, error)
                is_told = True
        await asyncio.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT_S)
