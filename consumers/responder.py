"""Read requests with FastStream: what is asked here may be dropped, never be slow."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from aiokafka import ConsumerRecord
from aiokafka.errors import KafkaError
from faststream import AckPolicy
from faststream.kafka import KafkaBroker, KafkaMessage
from faststream.security import (
    BaseSecurity,
    SASLPlaintext,
    SASLScram256,
    SASLScram512,
)

from consumers.header_names import read_any_header_name
from consumers.keyed import raw_record
from domain.errors import BrokerUnavailableError
from domain.outbox import RawRecord
from producers.connection import KafkaConnection

logger = logging.getLogger(__name__)

_READY_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 10.0
_SASL: Final[Mapping[str, type[SASLPlaintext | SASLScram256 | SASLScram512]]] = {
    "PLAIN": SASLPlaintext,
    "SCRAM-SHA-256": SASLScram256,
    "SCRAM-SHA-512": SASLScram512,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderSettings:
    """One fetch is in flight per broker node, so a request may wait for as long as ``fetch_max_wait_ms``."""

    group: str = "afterword-responder"
    workers: int = 16
    fetch_max_wait_ms: int = 10
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000


class Responder:
    """Hands every request to the handler of its topic; starts at the newest: late answers are worthless."""

    def __init__(
        self,
        connection: KafkaConnection,
        handlers: Mapping[str, Callable[[RawRecord], Awaitable[None]]],
        settings: ResponderSettings | None = None,
    ) -> None:
        settings = settings or ResponderSettings()
        read_any_header_name()
        self._broker = KafkaBroker(
            cast("list[str]", connection.options()["bootstrap_servers"]),
            client_id=connection.client_id,
            security=_security(connection),
            logger=None,
            apply_types=False,
        )
        # One consumer for all topics: each consumer asks the broker anew every few milliseconds.
        self._subscriber = self._broker.subscriber(
            *handlers,
            group_id=settings.group,
            auto_offset_reset="latest",
            fetch_max_wait_ms=settings.fetch_max_wait_ms,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            ack_policy=AckPolicy.ACK_FIRST,
            max_workers=settings.workers,
            no_reply=True,
            parser=_parsed,
            decoder=_as_raw_record,
        )

        async def dispatch(record: RawRecord) -> None:
            await handlers[record.topic](record)

        self._subscriber(dispatch)

    async def start(self) -> None:
        """Begin to answer.

        Raises:
            BrokerUnavailableError: the broker cannot be reached.
        """
        try:
            await self._broker.start()
        except KafkaError as error:
            await self.stop()
            raise BrokerUnavailableError(f"the broker cannot be reached: {type(error).__name__}") from error

    async def stop(self) -> None:
        """Take no more requests, and let those in hand end for a moment."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._broker.stop()
        except (KafkaError, TimeoutError) as error:
            logger.warning("the responder did not stop cleanly: %s", type(error).__name__)

    @property
    def serves(self) -> bool:
        """Whether requests are being read, as far as the group has given us partitions."""
        return self._subscriber.running and self._subscriber.consumer is not None

    async def ready(self) -> None:
        """Return when the group has assigned partitions and their positions are known.

        Only for one replica: a second one may never get a partition.
        """
        while not await self._knows_positions():
            await asyncio.sleep(_READY_SECONDS)

    async def _knows_positions(self) -> bool:
        consumer = self._subscriber.consumer
        if consumer is None or not (assigned := consumer.assignment()):
            return False
        try:
            for partition in assigned:
                await consumer.position(partition)
        except KafkaError as error:
            # A replica that joins now takes partitions away while they are asked for.
            logger.info("the positions are not known yet: %s", type(error).__name__)
            return False
        return True


async def _parsed(
    record: "ConsumerRecord[Any, Any]", original: Callable[[Any], Awaitable[KafkaMessage]]
) -> KafkaMessage:
    """Parse without the headers that are not UTF-8: FastStream's parser fails on them, with the request."""
    readable = tuple((name, value) for name, value in record.headers if _is_text(value))
    return await original(replace(record, headers=readable))


def _is_text(value: bytes | None) -> bool:
    try:
        return value is not None and value.decode() is not None
    except UnicodeDecodeError:
        return False


async def _as_raw_record(message: KafkaMessage) -> RawRecord:
    return raw_record(cast("ConsumerRecord[Any, Any]", message.raw_message))


def _security(connection: KafkaConnection) -> BaseSecurity | None:
    use_ssl = connection.security_protocol in ("SSL", "SASL_SSL")
    if connection.security_protocol.startswith("SASL"):
        kind = _SASL[connection.sasl_mechanism]
        return kind(
            username=connection.sasl_username or "",
            password=connection.sasl_password or "",
            ssl_context=connection.ssl_context,
            use_ssl=use_ssl,
        )
    return BaseSecurity(ssl_context=connection.ssl_context, use_ssl=True) if use_ssl else None
