"""Hold partitions back that have enough to do, without stopping to poll."""

from collections.abc import Mapping
from typing import Protocol

from aiokafka import TopicPartition

from consumers.partitions import Partition, PartitionState


class Assigned(Protocol):
    """What of a consumer is regulated."""

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are ours."""
        ...

    def pause(self, *partitions: TopicPartition) -> None:
        """Give nothing more of ``partitions``."""
        ...

    def resume(self, *partitions: TopicPartition) -> None:
        """Give again what comes of ``partitions``."""
        ...


class Flow:
    """Pauses and resumes partitions. A pause drops what was fetched ahead, so it goes with hysteresis."""

    def __init__(self, consumer: Assigned, *, max_in_flight: int, max_uncommitted: int) -> None:
        self._consumer = consumer
        self._max_in_flight = max_in_flight
        self._max_uncommitted = max_uncommitted
        self._paused: set[TopicPartition] = set()

    def regulate(self, partitions: Mapping[TopicPartition, Partition]) -> int:
        """Pause what is full and resume what is not; return how many records may be polled for."""
        free = self._max_in_flight - sum(partition.waiting for partition in partitions.values())
        assigned = self._consumer.assignment()
        full = {tp for tp, partition in partitions.items() if self._is_full(tp, partition)}
        hold = (set(partitions) if free <= 0 else full) & assigned
        if hold - self._paused:
            self._consumer.pause(*(hold - self._paused))
        self._paused = (self._paused | hold) & assigned
        if free > self._max_in_flight // 4:
            resumed = self._paused - full
            if resumed:
                self._consumer.resume(*resumed)
            self._paused -= resumed
        # A poll of nothing but paused partitions would sleep while places come free.
        return max(free, 0) if assigned - self._paused or not assigned else 0

    def forget(self, revoked: set[TopicPartition]) -> None:
        """Forget partitions that went away; an assignment starts unpaused."""
        self._paused -= revoked

    def _is_full(self, tp: TopicPartition, partition: Partition) -> bool:
        if partition.state is not PartitionState.RUNNING:
            return True
        limit = self._max_uncommitted // 2 if tp in self._paused else self._max_uncommitted
        return partition.uncommitted >= max(limit, 1)
