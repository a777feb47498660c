"""Records to and from the broker, byte for byte, for tests that look at what really went over it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from domain.outbox import Headers

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A record of a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> str | None:
        """Return the last header called ``name``."""
        found = [value for key, value in self.headers if key == name]
        return found[-1].decode() if found else None

    def json(self) -> Any:
        """Read the value."""
        return json.loads(self.value or b"null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to send."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class Publisher:
    """Sends records as they are."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def send(self, *records: Outgoing) -> list[tuple[int, int]]:
        """Send ``records`` in their order; return partition and offset of each once all are safe."""
        sent = [
            await self._producer.send(one.topic, one.value, key=one.key, headers=list(one.headers))
            for one in records
        ]
        places = [await acknowledged for acknowledged in sent]
        return [(place.partition, place.offset) for place in places]

    async def send_json(
        self, topic: str, body: Mapping[str, Any], *, key: str | None = None, headers: Headers = ()
    ) -> None:
        """Send ``body`` as JSON; without ``key`` that of its scope."""
        about = key if key is not None else scope_key(body)
        value = json.dumps(body).encode()
        await self.send(Outgoing(topic=topic, value=value, key=about.encode(), headers=headers))


def scope_key(body: Mapping[str, Any]) -> str:
    """Return the key of what is about the user of ``body``."""
    return f"{body.get('tenant_id', 'default')}:{body.get('user_id') or body.get('external_user_id')}"


@asynccontextmanager
async def publishing(bootstrap: str, *, request_timeout_ms: int = 40_000) -> AsyncGenerator[Publisher]:
    """Give a publisher; it outlives a restart of the broker."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", retry_backoff_ms=200, request_timeout_ms=request_timeout_ms
    )
    await producer.start()
    try:
        yield Publisher(producer)
    finally:
        await producer.stop()


async def read_all(bootstrap: str, topic: str) -> list[Read]:
    """Return every record of ``topic``, in the order of its partitions."""
    # A seek to the beginning would race with a reset to the end, and lose.
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=20,
    )
    await consumer.start()
    try:
        places = await _places(consumer, topic)
        consumer.assign(places)
        ends: dict[TopicPartition, int] = await consumer.end_offsets(places)
        found: list[Read] = []
        while any([await consumer.position(place) < ends[place] for place in places]):
            polled = await consumer.getmany(timeout_ms=200)
            found += [_read(record) for place in sorted(polled) for record in polled[place]]
    finally:
        await consumer.stop()
    return sorted(found, key=lambda record: (record.partition, record.offset))


async def _places(consumer: AIOKafkaConsumer, topic: str) -> list[TopicPartition]:
    cluster = await consumer._client.fetch_all_metadata()
    partitions = cluster.partitions_for_topic(topic) or set()
    return [TopicPartition(topic, number) for number in sorted(partitions)]


def _read(record: Any) -> Read:
    return Read(
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
    )


async def lag(bootstrap: str, topics: Iterable[str]) -> int:
    """Return how many records of ``topics`` no group has committed yet."""
    wanted = set(topics)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    await admin.start()
    await consumer.start()
    try:
        done: dict[TopicPartition, int] = {}
        for group, _ in await admin.list_consumer_groups():
            for place, offset in (await admin.list_consumer_group_offsets(group)).items():
                if place.topic in wanted:
                    done[place] = max(offset.offset, done.get(place, 0))
        places = [place for topic in sorted(wanted) for place in await _places(consumer, topic)]
        ends: dict[TopicPartition, int] = await consumer.end_offsets(places)
        return sum(end - done.get(place, 0) for place, end in ends.items())
    finally:
        await consumer.stop()
        await admin.close()


async def rewind(bootstrap: str, topics: Iterable[str]) -> None:
    """Make every group of ``topics`` start from their beginning; none may have a member now."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        wanted = set(topics)
        for group, _ in await admin.list_consumer_groups():
            offsets = await admin.list_consumer_group_offsets(group)
            places = [place for place in offsets if place.topic in wanted]
            if places:
                await _commit_beginning(bootstrap, group, places)
    finally:
        await admin.close()


async def _commit_beginning(bootstrap: str, group: str, places: Sequence[TopicPartition]) -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign(places)
        await consumer.commit(dict.fromkeys(places, 0))
    finally:
        await consumer.stop()


async def create_topic(bootstrap: str, topic: str, *, partitions: int = 1) -> None:
    """Create ``topic``."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        await admin.close()


async def until(
    condition: Callable[[], Awaitable[bool]],
    *,
    within: float,
    what: str,
    every: float = _POLL_S,
) -> None:
    """Return when ``condition`` holds; fail when it does not ``within`` seconds."""
    try:
        async with asyncio.timeout(within):
            while not await condition():
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(f"not within {within} s: {what}") from None


def headers_of(**named: str) -> Headers:
    """Return headers from texts."""
    return tuple((name, value.encode()) for name, value in named.items())


def in_order(records: Sequence[Read], name: str) -> list[str | None]:
    """Return the header ``name`` of each of ``records``."""
    return [record.header(name) for record in records]
