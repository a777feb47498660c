"""How far one assigned partition has got: what was polled, what is done, what may be committed."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from enum import Enum, auto

from domain.outbox import RawRecord


class PartitionState(Enum):
    """Whether records of a partition are started."""

    RUNNING = auto()
    STALLED = auto()
    CLOSED = auto()


class Partition:
    """One assignment of one partition; a new assignment is a new object.

    Records of one key run in the order of their offsets, one at a time; different keys run at once.
    ``watermark`` is the lowest offset that is not done: everything below it may be committed.
    """

    def __init__(self, key_of: Callable[[RawRecord], Hashable]) -> None:
        self._key_of = key_of
        self._polled: deque[int] = deque()
        self._done: set[int] = set()
        self._last_polled = -1
        self._lanes: dict[Hashable, deque[RawRecord]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.state = PartitionState.RUNNING
        self.watermark: int | None = None
        self.committed: int | None = None

    @property
    def uncommitted(self) -> int:
        """How many polled records are not below the watermark."""
        return len(self._polled)

    @property
    def waiting(self) -> int:
        """How many records hold a place: those in lanes, or what still runs where nothing more is started."""
        if self.state is not PartitionState.RUNNING:
            return len(self.tasks)
        return sum(len(lane) for lane in self._lanes.values())

    def behind(self, end: int) -> int:
        """Return how many records below the offset ``end`` are not done."""
        return self.uncommitted + max(end - self._last_polled - 1, 0) if self._last_polled >= 0 else 0

    @property
    def to_commit(self) -> int | None:
        """The offset to commit, where it is a new one."""
        return self.watermark if self.watermark != self.committed else None

    def add(self, record: RawRecord) -> Hashable | None:
        """Take in a polled record; return its key when nobody works on that key yet.

        A record that was polled before, or comes when nothing is started any more, is not taken.
        """
        if self.state is not PartitionState.RUNNING or record.offset <= self._last_polled:
            return None
        self._last_polled = record.offset
        self._polled.append(record.offset)
        key = self._key_of(record)
        lane = self._lanes.get(key)
        if lane is not None:
            lane.append(record)
            return None
        self._lanes[key] = deque((record,))
        return key

    def next_of(self, key: Hashable) -> RawRecord | None:
        """Return the record to run for ``key``; None, and the lane is gone, when nothing is to be started."""
        lane = self._lanes.get(key)
        if lane and self.state is PartitionState.RUNNING:
            return lane[0]
        self._lanes.pop(key, None)
        return None

    def finished(self, key: Hashable) -> None:
        """Note that the running record of ``key`` is done, and move the watermark as far as it goes."""
        self._done.add(self._lanes[key].popleft().offset)
        while self._polled and self._polled[0] in self._done:
            offset = self._polled.popleft()
            self._done.discard(offset)
            self.watermark = offset + 1

    def stall(self) -> None:
        """Start nothing more: the watermark stays below a record that could not be handled."""
        if self.state is PartitionState.RUNNING:
            self.state = PartitionState.STALLED

    def close(self) -> None:
        """Start nothing more: the partition goes to somebody else, or the consumer stops."""
        self.state = PartitionState.CLOSED
