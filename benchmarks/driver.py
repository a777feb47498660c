"""The driver of the write path, in a process of its own: a closed loop of conversations of different users.

Reads its order as JSON from standard input; prints ``measuring`` when the warm-up is over, and at the end its
result as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from schemas.topics import Topics
from tests.support.benchmark_talks import benchmark_conversation

COMPLETED: Final = b"memory.job.completed"
DEAD: Final = b"memory.job.dead"
TENANT: Final = "default"
_ENDED_AT: Final = "2026-03-02T10:00:00+00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the driver does; ``spread`` seconds lie between the first and the last conversation's start."""

    kafka: str
    prefix: str
    at_once: int
    seconds: float
    warm_up: float = 2.0
    spread: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What happened while it was measured; latencies in seconds."""

    conversations: int
    seconds: float
    latencies: tuple[float, ...]
    died: int
    users: tuple[str, ...]


@asynccontextmanager
async def talking(kafka: str, topic: str) -> AsyncGenerator[tuple[AIOKafkaProducer, AIOKafkaConsumer]]:
    """Give a producer, and a consumer that follows ``topic`` from this moment on."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka, enable_auto_commit=False, fetch_max_wait_ms=20)
    await producer.start()
    await consumer.start()
    try:
        await follow(consumer, topic)
        yield producer, consumer
    finally:
        await producer.stop()
        await consumer.stop()


class Driver:
    """Tells of conversations and hears of their ends."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._topics = Topics(order.prefix)
        self._numbers = count()
        self._waiting: dict[bytes, asyncio.Future[None]] = {}
        self._ended_at: list[float] = []
        self._latencies: list[tuple[float, float]] = []
        self._users: list[str] = []
        self._died = 0

    async def run(self) -> Driven:
        """Drive for the time that was ordered."""
        async with talking(self._order.kafka, self._topics.events) as (producer, consumer):
            return await self._driven(producer, consumer)

    async def _driven(self, producer: AIOKafkaProducer, consumer: AIOKafkaConsumer) -> Driven:
        order = self._order
        hearing = asyncio.create_task(self._hear(consumer))
        loops = [
            asyncio.create_task(self._loop(producer, order.spread * place / order.at_once))
            for place in range(order.at_once)
        ]
        await all_well(order.warm_up, hearing, *loops)
        sys.stdout.write("measuring\n")
        sys.stdout.flush()
        start = time.perf_counter()
        await all_well(order.seconds, hearing, *loops)
        end = time.perf_counter()
        for task in (hearing, *loops):
            task.cancel()
        await asyncio.gather(hearing, *loops, return_exceptions=True)
        return Driven(
            conversations=sum(start <= moment < end for moment in self._ended_at),
            seconds=end - start,
            latencies=tuple(sorted(taken for moment, taken in self._latencies if start <= moment < end)),
            died=self._died,
            users=tuple(self._users[:2_000]),
        )

    async def _loop(self, producer: AIOKafkaProducer, delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            user = str(uuid4())
            key = f"{TENANT}:{user}".encode()
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[key] = ended
            start = time.perf_counter()
            await producer.send(self._topics.ended, conversation(user, next(self._numbers)), key=key)
            await ended
            now = time.perf_counter()
            self._latencies.append((now, now - start))
            self._users.append(user)

    async def _hear(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            polled: dict[TopicPartition, list[Any]] = await consumer.getmany(timeout_ms=200)
            for record in (record for records in polled.values() for record in records):
                kind = dict(record.headers).get("ce_type")
                # Its headers and key tell enough: no value is parsed.
                if kind in (COMPLETED, DEAD):
                    self._ended(record.key, is_dead=kind == DEAD)

    def _ended(self, key: bytes, *, is_dead: bool) -> None:
        self._died += is_dead
        ended = self._waiting.pop(key, None)
        if ended is not None:
            self._ended_at.append(time.perf_counter())
            ended.set_result(None)


async def follow(consumer: AIOKafkaConsumer, topic: str) -> None:
    """Assign all partitions of ``topic`` to ``consumer``, from this moment on."""
    consumer.subscribe([topic])
    while not (partitions := consumer.partitions_for_topic(topic)):
        await asyncio.sleep(0.05)
    consumer.unsubscribe()
    places = [TopicPartition(topic, number) for number in sorted(partitions)]
    consumer.assign(places)
    await consumer.seek_to_end(*places)
    for place in places:
        await consumer.position(place)


async def all_well(seconds: float, *tasks: "asyncio.Task[None]") -> None:
    """Wait, and fail when one of ``tasks`` does."""
    ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.result()


def conversation(user: str, number: int) -> bytes:
    """Return the record of conversation ``number``, of ``user``."""
    messages = [{"role": role, "content": content} for role, content in benchmark_conversation(number)]
    body = {"session_id": str(uuid4()), "user_id": user, "ended_at": _ENDED_AT, "messages": messages}
    return json.dumps(body).encode()


def main() -> None:
    """Read the order, drive, print the result."""
    order = Order(**json.loads(sys.stdin.readline()))
    driven = asyncio.run(Driver(order).run())
    sys.stdout.write(json.dumps(asdict(driven)) + "\n")


if __name__ == "__main__":
    main()
