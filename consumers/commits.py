"""Commit offsets: always explicit ones, never for longer than a moment."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from consumers.partitions import Partition
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

MOST_SECONDS: Final = 5.0


class Committing(Protocol):
    """What of a consumer is needed to commit."""

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are ours."""
        ...

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Commit ``offsets``."""
        ...


class Commits:
    """Commits watermarks, one commit at a time, so that an older one never lands after a newer one."""

    def __init__(self, consumer: Committing, *, group: str) -> None:
        self._consumer = consumer
        self._group = group
        self._failing = Notice(logger)
        self._one_at_a_time = asyncio.Lock()
        self.failures = 0

    async def __call__(
        self, partitions: Mapping[TopicPartition, Partition], *, seconds: float = MOST_SECONDS
    ) -> None:
        """Commit what is new in ``partitions``; a failure is counted and made good by the next one."""
        async with self._one_at_a_time:
            # One partition that is no longer ours would fail the commit of all of them.
            mine = self._consumer.assignment()
            offsets = {
                tp: offset
                for tp, partition in partitions.items()
                if tp in mine and (offset := partition.to_commit) is not None
            }
            # A revocation may take partitions out of the mapping while the commit is under way.
            owners = {tp: partitions[tp] for tp in offsets}
            if offsets and await self._committed(offsets, seconds):
                for tp, offset in offsets.items():
                    owners[tp].committed = offset

    async def _committed(self, offsets: Mapping[TopicPartition, int], seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._consumer.commit(dict(offsets))
        except (CommitFailedError, IllegalStateError) as error:
            logger.warning("a commit came too late for its group %s: %s", self._group, type(error).__name__)
        except (KafkaError, TimeoutError) as error:
            self._failing.begins(
                "commits of %s fail and are made again: %s", self._group, type(error).__name__
            )
        else:
            self._failing.is_over()
            return True
        self.failures += 1
        return False
