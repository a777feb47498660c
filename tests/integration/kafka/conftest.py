"""Topics, records and consumers of one test."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewTopic

from consumers.keyed import KeyedConsumer
from consumers.lanes import Handler
from consumers.settings import ConsumerSettings
from producers.connection import KafkaConnection, Producer
from producers.topics_admin import create_missing
from tests.support.kafka import KafkaServer

Consume = Callable[..., Any]
MakeTopic = Callable[[int], Awaitable[str]]


async def until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def committed(connection: KafkaConnection, group: str, topic: str, partition: int = 0) -> int | None:
    consumer = AIOKafkaConsumer(**connection.options(), group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        offset: int | None = await consumer.committed(TopicPartition(topic, partition))
        return offset
    finally:
        await consumer.stop()


async def read_all(connection: KafkaConnection, topic: str, *, partitions: int = 1) -> list[Any]:
    consumer = AIOKafkaConsumer(**connection.options(), group_id=None, auto_offset_reset="earliest")
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        records: list[Any] = []
        while len(records) < sum(ends.values()):
            polled = await consumer.getmany(timeout_ms=200)
            records += [record for batch in polled.values() for record in batch]
        return records
    finally:
        await consumer.stop()


@pytest.fixture
def connection(kafka: KafkaServer) -> KafkaConnection:
    return KafkaConnection(bootstrap_servers=kafka.bootstrap, client_id="test")


@pytest.fixture
async def producer(connection: KafkaConnection) -> AsyncGenerator[Producer]:
    async with Producer(connection) as producer:
        yield producer


@pytest.fixture
def make_topic(connection: KafkaConnection) -> MakeTopic:
    async def make(partitions: int) -> str:
        topic = f"test-{uuid4().hex[:10]}"
        await create_missing(connection, [NewTopic(topic, partitions, 1)])
        return topic

    return make


@pytest.fixture
def session_ms(kafka: KafkaServer) -> int:
    """The shortest session that the broker takes; on Tansu a first join takes half of it."""
    return 2_000 if kafka.kind == "tansu" else 6_000


@pytest.fixture
def consuming(connection: KafkaConnection, session_ms: int) -> Consume:
    @asynccontextmanager
    async def consume(
        handler: Handler, topic: str, group: str, **settings: Any
    ) -> AsyncGenerator[KeyedConsumer]:
        quick = {
            "drain": 2.0,
            "stop_budget": 8.0,
            "commit_every": 0.05,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": 500,
            **settings,
        }
        consumer = KeyedConsumer(handler, connection, ConsumerSettings(topics=(topic,), group=group, **quick))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(consumer.run())
            try:
                yield consumer
            finally:
                consumer.stop()
                await asyncio.wait([running], timeout=15)
                running.cancel()

    return consume
