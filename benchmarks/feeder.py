"""Feeds conversations at a steady rate, in a process of its own: an open loop over many users.

Reads its order as JSON from standard input; prints ``feeding`` when it begins, ``fed`` when all are sent,
and its result as JSON when all have ended or when it has waited long enough.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.driver import COMPLETED, DEAD, TENANT, all_well, conversation, talking
from schemas.topics import Topics

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to feed and how often; ``patience`` seconds are waited for the last ones."""

    kafka: str
    prefix: str
    users: tuple[str, ...]
    rate: float
    seconds: float
    patience: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What became of it; latencies in seconds, in order of size."""

    sent: int
    completed: int
    died: int
    latencies: tuple[float, ...]
    drained_after: float


class Feeder:
    """Sends on time, whether or not what was sent before has ended."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._topics = Topics(order.prefix)
        self._began: dict[bytes, float] = {}
        self._latencies: list[float] = []
        self._sent = 0
        self._ended = {COMPLETED: 0, DEAD: 0}

    async def run(self) -> Fed:
        """Feed for the time that was ordered, and wait for what is under way."""
        async with talking(self._order.kafka, self._topics.events) as (producer, consumer):
            return await self._fed(producer, consumer)

    async def _fed(self, producer: AIOKafkaProducer, consumer: AIOKafkaConsumer) -> Fed:
        hearing = asyncio.create_task(self._hear(consumer))
        _say("feeding")
        feeding = asyncio.create_task(self._feed(producer))
        await all_well(2 * self._order.seconds, feeding, hearing)
        _say("fed")
        drained_after = await self._drained()
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        return Fed(
            sent=self._sent,
            completed=self._ended[COMPLETED],
            died=self._ended[DEAD],
            latencies=tuple(sorted(self._latencies)),
            drained_after=drained_after,
        )

    async def _feed(self, producer: AIOKafkaProducer) -> None:
        order = self._order
        start = time.perf_counter()
        for number in range(int(order.rate * order.seconds)):
            await asyncio.sleep(start + number / order.rate - time.perf_counter())
            user = order.users[number % len(order.users)]
            key = f"{TENANT}:{user}".encode()
            self._began[key] = time.perf_counter()
            await producer.send(self._topics.ended, conversation(user, number), key=key)
            self._sent += 1
        await producer.flush()

    async def _hear(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            polled: dict[TopicPartition, list[Any]] = await consumer.getmany(timeout_ms=200)
            for record in (record for records in polled.values() for record in records):
                kind = dict(record.headers).get("ce_type")
                if kind in self._ended:
                    self._ended[kind] += 1
                    began = self._began.pop(record.key, None)
                    self._latencies += [time.perf_counter() - began] if began is not None else []

    async def _drained(self) -> float:
        start = time.perf_counter()
        while sum(self._ended.values()) < self._sent:
            await asyncio.sleep(_POLL_S)
            if time.perf_counter() - start > self._order.patience:
                break
        return time.perf_counter() - start


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the order, feed, print the result."""
    order = Order(**json.loads(sys.stdin.readline()))
    fed = asyncio.run(Feeder(order).run())
    sys.stdout.write(json.dumps(asdict(fed)) + "\n")


if __name__ == "__main__":
    main()
