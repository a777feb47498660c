"""Follow the topics that tell of memory: events, and facts as they are now."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from producers.client_errors import MemoryUnavailableError
from producers.connection import KafkaConnection
from schemas import headers
from schemas.events import JobEvent
from schemas.fact import Fact
from schemas.jobs import Job
from schemas.wire import WireError, decode

logger = logging.getLogger(__name__)

_POLL_MS: Final = 500
_STOP_SECONDS: Final = 5.0
_JOB_EVENT: Final = "memory.job."


@dataclass(frozen=True, slots=True, kw_only=True)
class FactNow:
    """A fact as it is now; ``fact`` is None when it is gone."""

    fact_id: UUID
    fact: Fact | None


@asynccontextmanager
async def following(
    connection: KafkaConnection, topic: str, *, from_start: bool
) -> AsyncGenerator[AsyncIterator[Any]]:
    """Give the records of all partitions of ``topic``, from the start or from this moment on.

    Raises:
        MemoryUnavailableError: the broker cannot be reached or has no such topic.
    """
    # Without a group all partitions are assigned at the start.
    consumer = AIOKafkaConsumer(
        topic,
        **connection.options(),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest" if from_start else "latest",
        fetch_max_wait_ms=20,
    )
    try:
        await consumer.start()
        for place in consumer.assignment():
            await (consumer.seek_to_beginning(place) if from_start else consumer.seek_to_end(place))
            await consumer.position(place)
        yield _records(consumer)
    except KafkaError as error:
        raise MemoryUnavailableError(f"{topic} cannot be read: {type(error).__name__}") from error
    finally:
        await _stopped(consumer)


def job_of(record: Any) -> Job | None:
    """Return the job that an event tells of; None for another event, or one that cannot be read."""
    kind = headers.text(record.headers, headers.CE_TYPE)
    if kind is None or not kind.startswith(_JOB_EVENT):
        return None
    try:
        return decode(JobEvent, record.value).job
    except WireError as error:
        logger.warning("an event of a job cannot be read: %s", error)
        return None


def fact_of(record: Any) -> FactNow | None:
    """Return what a record of the compacted topic says; None for one that cannot be read."""
    try:
        fact_id = UUID((record.key or b"").decode())
        return FactNow(fact_id=fact_id, fact=decode(Fact, record.value) if record.value else None)
    except (ValueError, WireError) as error:
        logger.warning("a fact cannot be read: %s", type(error).__name__)
        return None


async def _records(consumer: AIOKafkaConsumer) -> AsyncIterator[Any]:
    while True:
        polled: dict[TopicPartition, list[Any]] = await consumer.getmany(timeout_ms=_POLL_MS)
        for records in polled.values():
            for record in records:
                yield record


async def _stopped(consumer: AIOKafkaConsumer) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await consumer.stop()
    except (KafkaError, TimeoutError) as error:
        logger.warning("a reader did not stop cleanly: %s", type(error).__name__)
