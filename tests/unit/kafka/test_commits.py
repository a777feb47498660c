"""A commit is of what was ours when it began, whatever is taken away while it is under way."""

from collections.abc import Mapping

import pytest
from aiokafka import TopicPartition

from consumers.commits import Commits
from consumers.partitions import Partition
from domain.outbox import RawRecord

pytestmark = pytest.mark.anyio

HERE = TopicPartition("t", 0)


class Revoking:
    """A consumer whose partition is taken away while it commits."""

    def __init__(self, partitions: dict[TopicPartition, Partition]) -> None:
        self._partitions = partitions
        self.committed: list[Mapping[TopicPartition, int]] = []

    def assignment(self) -> set[TopicPartition]:
        return {HERE}

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.committed.append(offsets)
        del self._partitions[HERE]


async def test_a_partition_that_is_taken_away_during_its_commit_ends_nothing() -> None:
    partition = Partition(lambda record: record.offset)
    partition.add(
        RawRecord(topic="t", partition=0, offset=0, key=None, value=b"", headers=(), timestamp=None)
    )
    partition.finished(0)
    partitions = {HERE: partition}
    consumer = Revoking(partitions)

    await Commits(consumer, group="group")(partitions)

    assert consumer.committed == [{HERE: 1}]
    assert partition.to_commit is None
