"""A consumer that is full polls again as soon as there is room."""

from aiokafka import TopicPartition

from consumers.flow import Flow
from consumers.partitions import Partition
from domain.outbox import RawRecord

HERE = TopicPartition("t", 0)


class Assigned:
    """A consumer of one partition that notes what is paused."""

    def __init__(self) -> None:
        self.paused: set[TopicPartition] = set()

    def assignment(self) -> set[TopicPartition]:
        return {HERE}

    def pause(self, *places: TopicPartition) -> None:
        self.paused |= set(places)

    def resume(self, *places: TopicPartition) -> None:
        self.paused -= set(places)


def test_a_consumer_does_not_sleep_in_a_poll_of_paused_partitions_while_places_come_free() -> None:
    consumer, partition = Assigned(), Partition(lambda record: record.offset)
    flow = Flow(consumer, max_in_flight=8, max_uncommitted=100)
    for offset in range(8):
        partition.add(
            RawRecord(topic="t", partition=0, offset=offset, key=None, value=None, headers=(), timestamp=None)
        )
    polled_for = [flow.regulate({HERE: partition})]

    for offset in range(4):
        partition.finished(offset)
        polled_for.append(flow.regulate({HERE: partition}))

    assert polled_for == [0, 0, 0, 3, 4]
    assert consumer.paused == set()
