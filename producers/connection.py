"""The broker: where it is, how to authenticate, and a producer that heals itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Final, Literal, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from domain.errors import BrokerUnavailableError, PermanentError
from domain.outbox import Headers
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

_STOP_SECONDS: Final = 5.0
_RETRY_BACKOFF_MS: Final = 500

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConnection:
    """Where the broker is and how to authenticate there. ``bootstrap_servers`` is ``host:port,host:port``."""

    bootstrap_servers: str
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: str = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_context: SSLContext | None = field(default=None, repr=False)
    client_id: str = "afterword"

    def options(self) -> dict[str, Any]:
        """Return the arguments that every client of the broker takes."""
        return {
            "bootstrap_servers": [server.strip() for server in self.bootstrap_servers.split(",")],
            "client_id": self.client_id,
            "security_protocol": self.security_protocol,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": self.sasl_password,
            "ssl_context": self.ssl_context,
            # Without a pause an outage is dozens of attempts and log lines a second.
            "retry_backoff_ms": _RETRY_BACKOFF_MS,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """``idempotent`` belongs on wherever the broker can do it; nothing here relies on it."""

    idempotent: bool = False
    linger_ms: int = 0
    request_timeout_ms: int = 10_000
    max_request_bytes: int = 4 << 20
    max_batch_bytes: int = 512 << 10


class Producer:
    """Sends records and waits for their acknowledgement; an error of the broker makes it start afresh.

    An idempotent producer whose broker lost its state fails for ever: it is never kept after an error.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        settings: ProducerSettings | None = None,
        *,
        on_rebuilt: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._settings = settings or ProducerSettings()
        self._on_rebuilt = on_rebuilt
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self.rebuilt = 0
        self._failing = Notice(logger)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect.

        Raises:
            BrokerUnavailableError: the broker cannot be reached.
        """
        await self._ready()

    async def stop(self) -> None:
        """Send what waits and disconnect, within a few seconds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _stopped(producer)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Send one record and wait until it is safe.

        Raises:
            BrokerUnavailableError: it may not be safe; sending again may double it.
        """
        acknowledged = await self.enqueue(topic, value, key=key, headers=headers, partition=partition)
        await self.settle([acknowledged])

    def lacks(self, topic: str) -> bool:
        """Say whether the broker, as far as it was asked, has no such topic."""
        return self._producer is not None and not self._producer.client.cluster.partitions_for_topic(topic)

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Awaitable[Any]:
        """Put one record into the next batch; ``settle`` what this returns.

        Raises:
            BrokerUnavailableError: the record was not taken.
            PermanentError: it is too large.
        """
        producer = await self._ready()
        try:
            acknowledged: Awaitable[Any] = await producer.send(
                topic, value, key=key, partition=partition, headers=list(headers)
            )
        except MessageSizeTooLargeError as error:
            raise PermanentError("the record is larger than the broker takes") from error
        except KafkaError as error:
            await self._forget(producer)
            raise BrokerUnavailableError(f"the broker refused a record: {type(error).__name__}") from error
        return acknowledged

    async def settle(self, sent: Sequence[Awaitable[Any]]) -> list[bool]:
        """Wait for every acknowledgement and say which came.

        Raises:
            BrokerUnavailableError: none came.
        """
        producer = self._producer
        results = await asyncio.gather(*sent, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            # A producer that is dropped cancels what it has not sent.
            if not isinstance(failure, KafkaError | asyncio.CancelledError):
                raise failure
        if failures and producer is not None:
            await self._forget(producer)
        elif results:
            self._failing.is_over()
        if failures and len(failures) == len(results):
            name = type(failures[0]).__name__
            raise BrokerUnavailableError(f"the broker acknowledged nothing: {name}") from failures[0]
        return [not isinstance(result, BaseException) for result in results]

    async def _ready(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                self._producer = await self._connected()
            return self._producer

    async def _connected(self) -> AIOKafkaProducer:
        settings = self._settings
        producer = AIOKafkaProducer(
            **self._connection.options(),
            acks="all",
            enable_idempotence=settings.idempotent,
            linger_ms=settings.linger_ms,
            request_timeout_ms=settings.request_timeout_ms,
            max_request_size=settings.max_request_bytes,
            max_batch_size=settings.max_batch_bytes,
        )
        try:
            await producer.start()
        except KafkaError as error:
            await _stopped(producer)
            raise BrokerUnavailableError(f"the broker cannot be reached: {type(error).__name__}") from error
        except BaseException:
            await _stopped(producer)
            raise
        return producer

    async def _forget(self, producer: AIOKafkaProducer) -> None:
        """Drop ``producer``, unless somebody has already."""
        if self._producer is producer:
            self._producer = None
            self.rebuilt += 1
            self._on_rebuilt()
            self._failing.begins("the producer starts afresh after an error of the broker")
            await _stopped(producer)


async def _stopped(producer: AIOKafkaProducer) -> None:
    """Stop ``producer``; it would wait for a broker that is away for as long as that is."""
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await producer.stop()
    except (KafkaError, TimeoutError) as error:
        logger.warning("the producer did not stop cleanly: %s", type(error).__name__)
