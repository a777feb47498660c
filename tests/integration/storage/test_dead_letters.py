"""Dead letters that are sent again: once each, closed when they succeed, opened again when they die."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.dead_letters import LetterFilter, LetterStatus, Place
from domain.jobs import JobError, JobOutcome
from domain.outbox import OutboxRecord, RawRecord
from domain.redrive_dead_letters import PurgeDeadLetters, RedriveDeadLetters
from producers.dead_letters import RedriveEncoder
from producers.encoding import Encoder
from schemas.topics import Topics
from storage.dead_letter_queries import PostgresDeadLetterQueries
from storage.job_rows import order_from_row
from tests.integration.storage.stores import DEADLINE, Stores, candidate, ended, extracted

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TOPICS = Topics()
OPEN = LetterFilter(statuses=(LetterStatus.OPEN,))
ERROR = JobError(code="unreadable_answer", message="no provider gave a readable answer")
RECORD = RawRecord(
    topic=TOPICS.ended,
    partition=3,
    offset=17,
    key=b"acme:\xff",
    value=b"\x00\xffraw",
    headers=(("odd", b"\xff\xfe"), ("odd", b"again")),
    timestamp=datetime(2024, 3, 1, tzinfo=UTC),
)


def queries(stores: Stores) -> PostgresDeadLetterQueries:
    return PostgresDeadLetterQueries(
        stores.database, encode=Encoder(TOPICS, "test"), encode_redriven=RedriveEncoder(TOPICS)
    )


async def redrive(stores: Stores, wanted: LetterFilter = OPEN, *, limit: int | None = None) -> int:
    use_case = RedriveDeadLetters(letters=queries(stores), lanes=RedriveEncoder(TOPICS).lanes)
    return await use_case(wanted, limit=limit, on_redriven=lambda: None)


async def bury(stores: Stores, record: RawRecord = RECORD, *, error_class: str = "invalid") -> bool:
    return await stores.dead_letters().bury(record, error_class=error_class, reason="no user", attempts=1)


async def outgoing(stores: Stores, topic: str) -> list[OutboxRecord]:
    rows = await stores.rows("SELECT * FROM lis.outbox WHERE topic = %s ORDER BY id", topic)
    return [
        OutboxRecord(
            topic=row["topic"],
            key=row["key"],
            value=row["value"],
            headers=tuple(zip(row["header_names"], row["header_values"], strict=True)),
        )
        for row in rows
    ]


async def letters(stores: Stores) -> Sequence[Mapping[str, Any]]:
    return await stores.rows('SELECT * FROM lis.dead_letters ORDER BY topic, partition, "offset"')


async def again(stores: Stores, topic: str = TOPICS.replay) -> RawRecord:
    """The newest redriven record, as it is read from its lane."""
    sent = (await outgoing(stores, topic))[-1]
    return RawRecord(
        topic=topic, partition=0, offset=900, key=sent.key, value=sent.value, headers=sent.headers
    )


async def test_a_letter_is_sent_again_byte_for_byte_in_a_lane_of_its_own(stores: Stores) -> None:
    await bury(stores)
    assert await redrive(stores) == 1

    (sent,) = await outgoing(stores, TOPICS.replay)
    assert (sent.key, sent.value, sent.headers[:2]) == (RECORD.key, RECORD.value, RECORD.headers)
    assert dict(sent.headers[2:]) == {
        "dlq-topic": TOPICS.ended.encode(),
        "dlq-partition": b"3",
        "dlq-offset": b"17",
        "dlq-replays": b"1",
        "dlq-sent-ms": b"1709251200000",
    }
    assert await outgoing(stores, TOPICS.ended) == []


async def test_a_letter_is_sent_again_once_by_however_many(stores: Stores) -> None:
    for offset in range(20):
        await bury(stores, replace(RECORD, offset=offset))

    counts = await asyncio.gather(*(redrive(stores) for _ in range(3)))

    assert sum(counts) == 20
    assert len(await outgoing(stores, TOPICS.replay)) == 20
    assert await redrive(stores) == 0


async def test_a_limit_and_an_interruption_leave_the_rest_open(stores: Stores) -> None:
    for offset in range(30):
        await bury(stores, replace(RECORD, offset=offset), error_class=("invalid", "permanent")[offset % 2])
    seen: list[int] = []

    def cut_off() -> None:
        seen.append(1)
        if len(seen) == 4:
            raise asyncio.CancelledError

    invalid = replace(OPEN, error_classes=("invalid",))
    use_case = RedriveDeadLetters(letters=queries(stores), lanes=RedriveEncoder(TOPICS).lanes)
    with pytest.raises(asyncio.CancelledError):
        await use_case(invalid, limit=10, on_redriven=cut_off)
    assert await redrive(stores, invalid, limit=10) == 10

    assert await redrive(stores, invalid) == 1
    sent = [dict(one.headers)["dlq-offset"] for one in await outgoing(stores, TOPICS.replay)]
    assert sorted(map(int, sent)) == list(range(0, 30, 2))


async def test_one_that_succeeds_is_closed_and_one_that_dies_again_is_the_same_letter(stores: Stores) -> None:
    await bury(stores)
    await redrive(stores)
    record = await again(stores)

    assert not await bury(stores, record, error_class="permanent")
    (row,) = await letters(stores)
    assert (row["status"], row["replays"], row["error_class"], row["topic"]) == (
        "open",
        1,
        "permanent",
        TOPICS.ended,
    )
    told = [dict(one.headers) for one in await outgoing(stores, TOPICS.dead_letters)]
    assert [(one["dlq-topic"], one["dlq-offset"], one["dlq-replays"]) for one in told] == [
        (TOPICS.ended.encode(), b"17", b"0"),
        (TOPICS.ended.encode(), b"17", b"1"),
    ]

    await redrive(stores)
    await stores.dead_letters().close(record)
    assert (await letters(stores))[0]["status"] == "redriven", (
        "a late copy of the first sending closes nothing"
    )
    assert not await bury(stores, record)
    assert (await letters(stores))[0]["status"] == "redriven"

    await stores.dead_letters().close(await again(stores))
    (row,) = await letters(stores)
    assert (row["status"], row["replays"]) == ("closed", 2)
    assert len(await outgoing(stores, TOPICS.dead_letters)) == 2


async def test_a_record_that_only_says_to_be_a_letter_has_one_of_its_own(stores: Stores) -> None:
    await bury(stores)
    await redrive(stores)
    liar = replace(await again(stores), value=b"other")

    await stores.dead_letters().close(liar)
    assert await bury(stores, liar)

    assert [(row["topic"], row["status"]) for row in await letters(stores)] == [
        (TOPICS.ended, "redriven"),
        (TOPICS.replay, "open"),
    ]


async def test_a_posted_message_says_what_it_is_for_as_often_as_it_is_sent_again(stores: Stores) -> None:
    await bury(stores, replace(RECORD, topic=TOPICS.messages))
    await redrive(stores)
    record = await again(stores)
    await stores.run("DELETE FROM lis.dead_letters")

    assert await bury(stores, record)
    await redrive(stores)

    first, second = await outgoing(stores, TOPICS.replay)
    assert (dict(first.headers)["dlq-kind"], dict(second.headers)["dlq-kind"]) == (b"message", b"message")


async def dead_job(stores: Stores) -> RawRecord:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    (order,) = await outgoing(stores, TOPICS.jobs("bulk"))
    record = RawRecord(
        topic=order.topic, partition=1, offset=5, key=order.key, value=order.value, headers=order.headers
    )
    await stores.jobs().bury(claim, record, error=ERROR)
    return record


async def test_a_dead_job_is_like_new_and_closed_by_its_end(stores: Stores) -> None:
    await dead_job(stores)
    assert await redrive(stores) == 1

    (job,) = await stores.rows("SELECT * FROM lis.extraction_jobs")
    assert (job["status"], job["attempts"], job["lane"], job["error"]) == ("queued", 0, "replay", None)
    (sent,) = await outgoing(stores, TOPICS.jobs("replay"))
    assert dict(sent.headers)["dlq-topic"] == TOPICS.jobs("bulk").encode()
    assert (await stores.events())[-1] == "memory.job.queued"

    claim = await stores.jobs().claim(order_from_row(job), deadline=DEADLINE)
    assert claim is not None
    assert claim.attempt == 1
    await stores.dead_letters().close(await again(stores, TOPICS.jobs("replay")))
    assert (await letters(stores))[0]["status"] == "redriven"
    await stores.jobs().commit(claim, extracted(claim, candidate("home_city", "Porto")), JobOutcome())
    assert (await letters(stores))[0]["status"] == "closed"


async def test_a_redriven_job_that_dies_in_a_later_attempt_opens_its_letter_again(stores: Stores) -> None:
    record = await dead_job(stores)
    await redrive(stores)
    (job,) = await stores.rows("SELECT * FROM lis.extraction_jobs")
    claim = await stores.jobs().claim(order_from_row(job), deadline=DEADLINE)
    assert claim is not None

    await stores.jobs().bury(claim, replace(record, topic=TOPICS.jobs("replay"), offset=77), error=ERROR)

    (row,) = await letters(stores)
    assert (row["topic"], row["offset"], row["status"], row["replays"]) == (record.topic, 5, "open", 1)


async def test_letters_are_found_by_topic_class_tenant_and_time(stores: Stores) -> None:
    await bury(stores)
    await bury(stores, replace(RECORD, topic="else", key=b"x", value=b'{"tenant_id": "other"}'))
    store = queries(stores)

    async def found(**more: Any) -> list[str]:
        return [one.place.topic for one in await store.page(LetterFilter(**more), most=10)]

    assert await found(tenant_id="other") == ["else"]
    assert await found(tenant_id="acme") == [TOPICS.ended]
    assert await found(topics=("else",)) == ["else"]
    assert await found(error_classes=("exhausted",)) == []
    assert await found(until=datetime(2024, 1, 1, tzinfo=UTC)) == []
    assert len(await found(since=datetime(2024, 1, 1, tzinfo=UTC))) == 2
    letter = await store.find(Place(topic=TOPICS.ended, partition=3, offset=17))
    assert letter is not None
    assert letter.record == RECORD


async def test_what_has_no_lane_stays_open_and_is_counted(stores: Stores) -> None:
    await bury(stores, replace(RECORD, topic="memory.commands.v1"))
    use_case = RedriveDeadLetters(letters=queries(stores), lanes=RedriveEncoder(TOPICS).lanes)

    plan = await use_case.plan(OPEN)

    assert (plan.total, plan.stranded) == (0, 1)
    assert await redrive(stores) == 0
    assert (await letters(stores))[0]["status"] == "open"


async def test_a_purge_deletes_what_is_meant_and_no_more_than_its_limit(stores: Stores) -> None:
    for offset in range(7):
        await bury(stores, replace(RECORD, offset=offset), error_class=("invalid", "permanent")[offset % 2])
    use_case = PurgeDeadLetters(letters=queries(stores))
    invalid = LetterFilter(error_classes=("invalid",))

    assert (await use_case.plan(invalid)).total == 4
    assert await use_case(invalid, limit=3, on_purged=lambda _: None) == 3
    assert await use_case(invalid, limit=None, on_purged=lambda _: None) == 1
    assert [row["error_class"] for row in await letters(stores)] == ["permanent"] * 3
