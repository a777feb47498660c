"""What only a real broker can show: its errors, its admin answers, headers of any bytes."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from consumers.failure_limit import FailureLimit
from consumers.failures import FailureGuard
from domain.errors import InvalidInputError, PermanentError
from domain.outbox import Headers, OutboxRecord, RawRecord, WaitingRecord
from producers.connection import KafkaConnection, Producer, ProducerSettings
from producers.dead_letters import DeadLetterEncoder
from producers.ingest import Ingest
from producers.outbox_relay import OutboxRelay
from producers.topics_admin import TopicsAdmin, TopicSettings, create_missing
from schemas.topics import Topics
from tests.integration.kafka.conftest import Consume, MakeTopic, committed, read_all, until
from tests.support.kafka import KafkaServer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


class Rows:
    """An outbox in memory that always leads."""

    def __init__(self, rows: Sequence[WaitingRecord]) -> None:
        self.rows = {row.id: row for row in rows}

    async def lead(self) -> bool:
        return True

    async def turn(self, done: Sequence[int]) -> Sequence[WaitingRecord]:
        for row in done:
            self.rows.pop(row, None)
        return [self.rows[row] for row in sorted(self.rows)][:500]

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(0.01)

    async def resign(self) -> None:
        return


class Graveyard:
    def __init__(self, producer: Producer, topics: Topics) -> None:
        self._producer = producer
        self._encode = DeadLetterEncoder(topics)

    async def bury(self, record: RawRecord, *, error_class: str, reason: str, attempts: int) -> bool:
        letter = self._encode(
            record, error_class=error_class, reason=reason, attempts=attempts, first_failed_at=NOW
        )
        await self._producer.send(letter.topic, letter.value, key=letter.key, headers=letter.headers)
        return True


async def test_a_record_with_headers_that_are_not_utf8_reaches_the_dead_letters_unchanged(
    connection: KafkaConnection,
    producer: Producer,
    make_topic: MakeTopic,
    consuming: Consume,
    topic_prefix: str,
) -> None:
    topics, topic, group = Topics(topic_prefix), await make_topic(1), uuid4().hex
    await create_missing(connection, [NewTopic(topics.dead_letters, 1, 1)])
    headers = (("traceparent", b"\xff\xfe"), ("empty", b""), ("twice", b"1"), ("twice", b"2"))
    await producer.send(topic, b"\xff\x00{", key=b"\xfe", headers=headers)
    await producer.send(topic, b"good", key=b"k")

    async def handle(record: RawRecord) -> None:
        if record.value != b"good":
            raise InvalidInputError("expected JSON")

    guard = FailureGuard(handle, dead_letters=Graveyard(producer, topics), limit=FailureLimit())
    async with consuming(guard, topic, group) as consumer:
        await until(lambda: consumer.joined)
        async with asyncio.timeout(10):
            while await committed(connection, group, topic) != 2:
                await asyncio.sleep(0.05)

    (letter,) = await read_all(connection, topics.dead_letters)
    assert (letter.key, letter.value) == (b"\xfe", b"\xff\x00{")
    assert letter.headers[:4] == headers
    assert dict(letter.headers[4:])["dlq-topic"] == topic.encode()


async def test_the_relay_sends_every_row_in_order_per_key(
    connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = await make_topic(3)
    rows = Rows(
        [
            WaitingRecord(
                id=number,
                record=OutboxRecord(topic=topic, key=f"k{number % 7}".encode(), value=str(number).encode()),
            )
            for number in range(1_200)
        ]
    )

    async with Producer(connection, ProducerSettings(linger_ms=5)) as producer, asyncio.TaskGroup() as tasks:
        relay = OutboxRelay(rows, producer)
        tasks.create_task(relay.run())
        await until(lambda: not rows.rows)
        relay.stop()

    records = await read_all(connection, topic, partitions=3)
    assert len(records) == 1_200
    for key in {record.key for record in records}:
        values = [int(record.value) for record in records if record.key == key]
        assert values == sorted(values)


async def test_the_relay_builds_a_new_producer_and_keeps_its_rows_while_the_broker_is_away(
    own_kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = await make_topic(1)
    rows = Rows([])
    settings = ProducerSettings(linger_ms=5, request_timeout_ms=1_500)

    async with Producer(connection, settings) as producer, asyncio.TaskGroup() as tasks:
        relay = OutboxRelay(rows, producer)
        tasks.create_task(relay.run())
        own_kafka.kill()
        for number in range(20):
            record = OutboxRecord(topic=topic, key=b"k", value=str(number).encode())
            rows.rows[number] = WaitingRecord(id=number, record=record)
        await until(lambda: relay.failures > 0)
        kept = len(rows.rows)
        await own_kafka.restart()
        if own_kafka.kind == "tansu":
            await create_missing(connection, [NewTopic(topic, 1, 1)])
        await until(lambda: not rows.rows, seconds=40)
        relay.stop()

    assert kept == 20
    assert producer.rebuilt >= 1
    values = [int(record.value) for record in await read_all(connection, topic)]
    assert sorted(set(values)) == list(range(20))
    assert values[-20:] == list(range(20))


async def _partitions(client: AIOKafkaAdminClient, topic: str) -> int:
    """Count the partitions of a topic, once the broker tells of any: a new one is not there at once."""
    async with asyncio.timeout(10):
        while not (found := len((await client.describe_topics([topic]))[0]["partitions"])):
            await asyncio.sleep(0.05)
        return found


async def test_missing_topics_are_made_once_and_existing_ones_left_alone(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    topics = Topics(topic_prefix)
    await create_missing(connection, [NewTopic(topics.ended, 1, 1)])
    admin = TopicsAdmin(connection, topics, TopicSettings(partitions=2, request_partitions=1))

    made = await admin.create_missing()
    again = await admin.create_missing()

    assert set(made) == set(topics.every) - {topics.ended}
    assert again == ()
    client = AIOKafkaAdminClient(**connection.options())
    await client.start()
    try:
        assert await _partitions(client, topics.ended) == 1
        assert await _partitions(client, topics.events) == 2
    finally:
        await client.close()


@pytest.mark.usefixtures("apache_kafka")
async def test_a_topic_that_the_broker_refuses_is_named(connection: KafkaConnection) -> None:
    with pytest.raises(PermanentError, match="bad name"):
        await create_missing(connection, [NewTopic("bad name", 1, 1)])


async def test_ingest_publishes_in_order_per_user_and_names_the_lines_it_refuses(
    connection: KafkaConnection, producer: Producer, topic_prefix: str
) -> None:
    topics = Topics(topic_prefix)
    await create_missing(connection, [NewTopic(topics.replay, 1, 1)])
    good = b'{"session_id": "%s", "external_user_id": "ana", "ended_at": "2026-03-01T10:00:00Z"}\n'
    lines = [good % str(uuid4()).encode(), b"\n", b"not JSON\n", good % str(uuid4()).encode()]

    ingested = await Ingest(producer, topics, replay_id="r1")(lines)

    assert ingested.published == 2
    assert [number for number, _ in ingested.refused] == [3]
    records = await read_all(connection, topics.replay)
    assert {record.key for record in records} == {b"default:ana"}
    assert dict(records[0].headers)["replay-mode"] == b"fill"


@pytest.mark.usefixtures("apache_kafka")
async def test_consuming_goes_on_where_it_was_after_the_broker_was_killed(
    own_kafka: KafkaServer,
    connection: KafkaConnection,
    make_topic: MakeTopic,
    consuming: Consume,
) -> None:
    topic, group = await make_topic(2), uuid4().hex
    handled: list[bytes | None] = []

    async def handle(record: RawRecord) -> None:
        await asyncio.sleep(0.01)
        handled.append(record.value)

    async def send(numbers: range) -> None:
        async with Producer(connection) as producer:
            for number in numbers:
                await producer.send(topic, str(number).encode(), key=f"k{number % 5}".encode())

    await send(range(20))
    async with consuming(handle, topic, group) as consumer:
        await until(lambda: len(handled) > 10)
        own_kafka.kill()
        await asyncio.sleep(1.0)
        await own_kafka.restart()
        await send(range(20, 40))
        await until(lambda: len(set(handled)) == 40, seconds=60)
        assert consumer.healthy()

    assert [await committed(connection, group, topic, number) for number in range(2)] != [None, None]
    assert set(handled) == {str(number).encode() for number in range(40)}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_an_engine_may_compress_what_it_publishes(
    codec: str,
    connection: KafkaConnection,
    apache_kafka: KafkaServer,
    make_topic: MakeTopic,
    consuming: Consume,
) -> None:
    assert apache_kafka.bootstrap == connection.bootstrap_servers
    topic, group, read = await make_topic(1), uuid4().hex, list[bytes | None]()
    engine = AIOKafkaProducer(**connection.options(), compression_type=codec, linger_ms=50)
    await engine.start()
    words = [f"the same words again and again {number}".encode() for number in range(20)]
    for sending in [await engine.send(topic, value) for value in words]:
        await sending
    await engine.stop()

    async def handle(record: RawRecord) -> None:
        read.append(record.value)

    async with consuming(handle, topic, group):
        await until(lambda: len(read) == len(words))

    assert read == words


@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
async def test_a_header_whose_name_is_not_utf8_keeps_no_record_from_being_read(
    codec: int, connection: KafkaConnection, make_topic: MakeTopic, consuming: Consume
) -> None:
    topic, group, read = await make_topic(1), uuid4().hex, list[tuple[bytes | None, Headers]]()
    engine = AIOKafkaProducer(**connection.options())
    await engine.start()
    batch = engine.create_batch()
    # This client's own builder writes no such name; that of another language's client may.
    batch._builder = _DefaultRecordBatchBuilderPy(2, codec, 0, -1, -1, -1, 1 << 20)
    names = ("before", _NotUtf8("name"), "after")
    for name in names:
        batch.append(key=b"k", value=name.encode(), timestamp=None, headers=[(name, b"\xff"), ("n", b"1")])
    await (await engine.send_batch(batch, topic, partition=0))
    await engine.send_and_wait(topic, b"another batch", key=b"k")
    await engine.stop()

    async def handle(record: RawRecord) -> None:
        read.append((record.value, record.headers))

    async with consuming(handle, topic, group):
        await until(lambda: len(read) == 4)

    assert read == [
        (b"before", (("before", b"\xff"), ("n", b"1"))),
        (b"\xff\xfename", ((r"\xff\xfename", b"\xff"), ("n", b"1"))),
        (b"after", (("after", b"\xff"), ("n", b"1"))),
        (b"another batch", ()),
    ]


class _NotUtf8(str):
    """The name of a header as a client in another language may write it."""

    def encode(self, *_: object, **__: object) -> bytes:
        return b"\xff\xfename"
