"""Ask over one topic and read the answer on another."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import Any, Final, Self
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from domain.errors import BrokerUnavailableError
from producers.client_errors import MemoryTimeoutError, MemoryUnavailableError
from producers.connection import KafkaConnection, Producer
from schemas import headers

logger = logging.getLogger(__name__)

_POLL_MS: Final = 1_000
_MOST_PENDING: Final = 10_000
_STOP_SECONDS: Final = 5.0


class Requests:
    """Sends requests and matches replies by correlation id.

    One consumer without a group lives as long as this object: no join, no rebalance. It stands at the end of
    its partition before the first request leaves, else a quick reply would be missed.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        producer: Producer,
        *,
        reply_topic: str,
        reply_partition: int = 0,
        fetch_max_wait_ms: int = 10,
    ) -> None:
        self._producer = producer
        self._reply_topic = reply_topic
        self._reply_partition = reply_partition
        self._connection = connection
        self._fetch_max_wait_ms = fetch_max_wait_ms
        self._pending: dict[str, asyncio.Future[bytes]] = {}
        self._open = AsyncExitStack()
        self.late = 0

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            consumer = AIOKafkaConsumer(
                **self._connection.options(),
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="latest",
                fetch_max_wait_ms=self._fetch_max_wait_ms,
            )
            opening.push_async_callback(_stopped, consumer)
            await consumer.start()
            await self._seek_to_end(consumer)
            group = await opening.enter_async_context(asyncio.TaskGroup())
            reader = group.create_task(self._read(consumer))
            opening.callback(reader.cancel)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()
        for future in self._pending.values():
            future.cancel()

    async def ask(self, topic: str, body: bytes, *, key: bytes, timeout: float) -> bytes:
        """Send ``body`` to ``topic`` and return the reply.

        Raises:
            MemoryTimeoutError: none came within ``timeout`` seconds.
            MemoryUnavailableError: the request did not leave, or too many wait already.
        """
        if len(self._pending) >= _MOST_PENDING:
            raise MemoryUnavailableError("too many requests wait for a reply")
        correlation_id = uuid4().hex
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending[correlation_id] = reply
        try:
            async with asyncio.timeout(timeout):
                await self._producer.send(
                    topic, body, key=key, headers=self._headers(correlation_id, timeout)
                )
                return await reply
        except TimeoutError:
            raise MemoryTimeoutError(f"no reply within {timeout} s") from None
        except BrokerUnavailableError as error:
            raise MemoryUnavailableError("the broker did not take the request") from error
        finally:
            del self._pending[correlation_id]

    def _headers(self, correlation_id: str, timeout: float) -> headers.Headers:
        deadline = int((time.time() + timeout) * 1_000)
        return (
            (headers.CORRELATION_ID, correlation_id.encode()),
            (headers.REPLY_TO, self._reply_topic.encode()),
            (headers.REPLY_PARTITION, str(self._reply_partition).encode()),
            (headers.DEADLINE_MS, str(deadline).encode()),
            (headers.CONTENT_TYPE, headers.JSON),
        )

    async def _seek_to_end(self, consumer: AIOKafkaConsumer) -> None:
        place = TopicPartition(self._reply_topic, self._reply_partition)
        consumer.assign([place])
        await consumer.seek_to_end(place)
        # The seek is lazy; asking for the position makes it happen now.
        await consumer.position(place)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            try:
                polled: dict[TopicPartition, list[Any]] = await consumer.getmany(timeout_ms=_POLL_MS)
            except KafkaError as error:
                logger.warning("replies cannot be read now: %s", type(error).__name__)
                await asyncio.sleep(1.0)
                continue
            for record in (record for records in polled.values() for record in records):
                self._settle(headers.text(record.headers, headers.CORRELATION_ID), record.value or b"")

    def _settle(self, correlation_id: str | None, body: bytes) -> None:
        reply = self._pending.get(correlation_id or "")
        if reply is None or reply.done():
            self.late += 1
        else:
            reply.set_result(body)


async def _stopped(consumer: AIOKafkaConsumer) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await consumer.stop()
    except (KafkaError, TimeoutError) as error:
        logger.warning("the reader of replies did not stop cleanly: %s", type(error).__name__)
