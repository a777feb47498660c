"""Where replies may go, and that a caller without a topic holds up nobody else."""

import asyncio

import pytest

from domain.errors import BrokerUnavailableError
from producers.replies import Replies
from schemas.headers import Headers

pytestmark = pytest.mark.anyio


class Broker:
    """Takes a record for a topic that it has; for another, or while it is away, the sender waits."""

    def __init__(self, *topics: str) -> None:
        self.topics = set(topics)
        self.is_away = False
        self.asked: list[str] = []

    async def send(self, topic: str, value: bytes | None, *, headers: Headers, partition: int | None) -> None:
        self.asked.append(topic)
        if self.is_away or topic not in self.topics:
            await asyncio.Event().wait()

    def lacks(self, topic: str) -> bool:
        return topic not in self.topics


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def broker() -> Broker:
    return Broker("there.replies")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replies(broker: Broker, clock: Clock) -> Replies:
    return Replies(broker, most_seconds=0.001, now=clock)


async def send(replies: Replies, topic: str) -> None:
    await replies.send(topic, b"{}", partition=None, correlation_id="c")


@pytest.mark.parametrize(
    "topic", ["../x.replies", "a b.replies", f"{'x' * 300}.replies", "\u00fcn.replies", "a.replies\n"]
)
def test_a_name_that_no_topic_can_have_is_not_allowed(replies: Replies, topic: str) -> None:
    assert replies.allows("engine-1.replies")
    assert not replies.allows(topic)


async def test_a_topic_that_was_not_there_is_not_waited_for_again(replies: Replies, broker: Broker) -> None:
    for _ in range(5):
        with pytest.raises(BrokerUnavailableError):
            await send(replies, "gone.replies")

    await send(replies, "there.replies")
    assert broker.asked == ["gone.replies", "there.replies"]


async def test_after_a_while_one_reply_alone_looks_for_a_topic_that_was_missing(
    replies: Replies, broker: Broker, clock: Clock
) -> None:
    with pytest.raises(BrokerUnavailableError):
        await send(replies, "late.replies")
    clock.seconds = 60.0

    tries = await asyncio.gather(*[send(replies, "late.replies") for _ in range(5)], return_exceptions=True)

    assert {type(one) for one in tries} == {BrokerUnavailableError}
    assert broker.asked == ["late.replies"] * 2


async def test_a_missing_topic_gets_its_replies_once_it_is_there(
    replies: Replies, broker: Broker, clock: Clock
) -> None:
    with pytest.raises(BrokerUnavailableError):
        await send(replies, "late.replies")
    clock.seconds = 60.0
    broker.topics.add("late.replies")

    for _ in range(3):
        await send(replies, "late.replies")

    assert broker.asked == ["late.replies"] * 4


async def test_a_broker_that_is_away_makes_no_topic_missing(replies: Replies, broker: Broker) -> None:
    broker.is_away = True
    with pytest.raises(BrokerUnavailableError):
        await send(replies, "there.replies")
    broker.is_away = False

    await send(replies, "there.replies")

    assert broker.asked == ["there.replies"] * 2
