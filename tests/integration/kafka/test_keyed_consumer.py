"""The keyed consumer on a real broker."""

import asyncio
from collections import defaultdict
from uuid import uuid4

import pytest

from consumers.failure_limit import FailureLimit, TooManyFailuresError
from consumers.failures import FailureGuard
from consumers.keyed import KeyedConsumer
from consumers.settings import ConsumerSettings
from domain.errors import InvalidInputError
from domain.outbox import RawRecord
from producers.connection import KafkaConnection, Producer
from tests.integration.kafka.conftest import Consume, MakeTopic, committed, until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def send(producer: Producer, topic: str, *pairs: tuple[str, str]) -> None:
    await producer.settle(
        [await producer.enqueue(topic, value.encode(), key=key.encode()) for key, value in pairs]
    )


async def test_records_of_a_key_run_in_order_one_at_a_time_and_keys_run_at_once(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group = await make_topic(2), uuid4().hex
    keys = [f"k{number}" for number in range(8)]
    await send(producer, topic, *[(key, str(turn)) for turn in range(6) for key in keys])
    seen: dict[bytes | None, list[int]] = defaultdict(list)
    running: set[bytes | None] = set()
    most_at_once = 0

    async def handle(record: RawRecord) -> None:
        nonlocal most_at_once
        assert record.key not in running
        running.add(record.key)
        most_at_once = max(most_at_once, len(running))
        await asyncio.sleep(0.01)
        seen[record.key].append(int(record.value or b""))
        running.discard(record.key)

    async with consuming(handle, topic, group):
        await until(lambda: sum(map(len, seen.values())) == 48)

    assert all(values == sorted(values) for values in seen.values())
    assert most_at_once > 2
    ends = [await committed(connection, group, topic, number) or 0 for number in range(2)]
    assert sum(ends) == 48


async def test_an_offset_is_committed_only_when_all_below_it_are_done(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group = await make_topic(1), uuid4().hex
    await send(producer, topic, ("a", "1"), ("slow", "2"), ("b", "3"), ("c", "4"))
    done: list[bytes | None] = []
    release = asyncio.Event()

    async def handle(record: RawRecord) -> None:
        if record.key == b"slow":
            await release.wait()
        done.append(record.key)

    async with consuming(handle, topic, group):
        await until(lambda: len(done) == 3)
        await asyncio.sleep(0.3)
        while_slow = await committed(connection, group, topic)
        release.set()
        await until(lambda: len(done) == 4)

    assert while_slow == 1
    assert await committed(connection, group, topic) == 4


async def test_a_handler_that_leaks_stalls_its_partition_visibly_and_skips_nothing(
    connection: KafkaConnection,
    producer: Producer,
    make_topic: MakeTopic,
    consuming: Consume,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, group = await make_topic(1), uuid4().hex
    await send(producer, topic, ("a", "1"), ("b", "bug"), ("c", "3"))

    async def handle(record: RawRecord) -> None:
        if record.value == b"bug":
            raise ZeroDivisionError("their words")

    async with consuming(handle, topic, group) as consumer:
        await until(lambda: consumer.stalled == 1)
        assert not consumer.healthy()

    assert await committed(connection, group, topic) == 1
    assert "a handler leaked ZeroDivisionError" in caplog.text
    assert "their words" not in caplog.text


async def test_work_in_hand_is_finished_and_committed_when_a_second_member_joins(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group = await make_topic(4), uuid4().hex
    done: list[bytes | None] = []

    async def handle(record: RawRecord) -> None:
        await asyncio.sleep(0.05)
        done.append(record.value)

    async with consuming(handle, topic, group) as first:
        await until(lambda: first.assigned == 4)
        await send(producer, topic, *[(f"k{number}", str(number)) for number in range(60)])
        await until(lambda: len(done) > 5)
        async with consuming(handle, topic, group) as second:
            await until(lambda: second.assigned == 2)
            await send(producer, topic, *[(f"k{number}", str(number)) for number in range(60, 120)])
            await until(lambda: len(set(done)) == 120)

    assert len(done) == 120
    assert sum([await committed(connection, group, topic, number) or 0 for number in range(4)]) == 120


async def test_a_stop_gives_back_what_cannot_be_finished_in_the_budget(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group = await make_topic(1), uuid4().hex
    await send(producer, topic, ("a", "1"), ("stuck", "2"))
    started = asyncio.Event()

    async def handle(record: RawRecord) -> None:
        if record.key == b"stuck":
            started.set()
            await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    async with consuming(handle, topic, group, drain=0.5, stop_budget=4.0):
        async with asyncio.timeout(20):
            await started.wait()
        began = loop.time()

    assert loop.time() - began < 4.0
    assert await committed(connection, group, topic) == 1


async def test_it_goes_on_polling_and_keeps_its_place_while_it_is_full(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group = await make_topic(1), uuid4().hex
    await send(producer, topic, *[(f"k{number}", str(number)) for number in range(40)])
    done: list[bytes | None] = []
    most = 0

    async def handle(record: RawRecord) -> None:
        await asyncio.sleep(0.05)
        done.append(record.value)

    async with consuming(handle, topic, group, max_in_flight=4) as consumer:
        while len(done) < 40:
            most = max(most, consumer.in_flight)
            assert consumer.healthy(most_seconds=5.0) or not done
            await asyncio.sleep(0.01)

    assert len(done) == 40
    assert most <= 4


async def test_a_consumer_whose_records_fail_ends_and_says_why_and_buries_no_more(
    connection: KafkaConnection, producer: Producer, make_topic: MakeTopic
) -> None:
    topic, group = await make_topic(2), uuid4().hex
    await send(producer, topic, *[(f"k{number}", "bad") for number in range(120)])
    buried: list[RawRecord] = []

    class Graveyard:
        async def bury(self, record: RawRecord, *, error_class: str, reason: str, attempts: int) -> bool:
            buried.append(record)
            return True

    async def handle(record: RawRecord) -> None:
        raise InvalidInputError("bad")

    guard = FailureGuard(handle, dead_letters=Graveyard(), limit=FailureLimit())
    consumer = KeyedConsumer(
        guard, connection, ConsumerSettings(topics=(topic,), group=group, session_timeout_ms=6_000)
    )

    async with asyncio.timeout(20):
        with pytest.raises(TooManyFailuresError, match="more than half of the last 100 messages failed"):
            await consumer.run()

    assert len(buried) == 50
    ends = [await committed(connection, group, topic, number) or 0 for number in range(2)]
    assert sum(ends) <= 50
