"""A responder starts beside another one that starts."""

from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError

from consumers.responder import Responder
from domain.outbox import RawRecord
from producers.connection import KafkaConnection

pytestmark = pytest.mark.anyio


class _RebalancedConsumer:
    """Loses its partition while its position is asked for, and gets it back."""

    def __init__(self) -> None:
        self.asked = 0

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition("requests", 0)}

    async def position(self, place: TopicPartition) -> int:
        self.asked += 1
        if self.asked == 1:
            raise IllegalStateError(f"Partition {place} is not assigned")
        return 7


class _Subscriber:
    def __init__(self, consumer: _RebalancedConsumer) -> None:
        self.consumer = consumer


async def test_a_rebalance_while_it_starts_does_not_end_a_responder() -> None:
    async def ignored(_: RawRecord) -> None:
        return

    consumer = _RebalancedConsumer()
    responder = Responder(KafkaConnection(bootstrap_servers="127.0.0.1:1"), {"requests": ignored})
    responder._subscriber = cast("Any", _Subscriber(consumer))

    await responder.ready()

    assert consumer.asked == 2
