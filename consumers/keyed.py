"""Read topics in order per key, many keys at once, and commit only what is done.

The rules that this keeps, and what was measured behind them: docs/architecture/consuming.md.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Hashable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from consumers.commits import Commits
from consumers.failure_limit import TooManyFailuresError
from consumers.flow import Flow
from consumers.header_names import read_any_header_name
from consumers.lanes import Handler, Lanes
from consumers.partitions import Partition, PartitionState
from consumers.settings import ConsumerSettings
from domain.outbox import RawRecord
from producers.connection import KafkaConnection
from producers.stopping import unless

logger = logging.getLogger(__name__)

_POLL_MS: Final = 500
_SATURATED_SECONDS: Final = 0.5
_COMMIT_SHARE: Final = 0.2


def by_key(record: RawRecord) -> Hashable:
    """Return what orders ``record``: its key, or nothing but itself when it has none."""
    return record.key or record.offset


class KeyedConsumer(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
    """Hands every record of its topics to ``handler``, at least once.

    At most one handler runs per key and partition, in the order of the offsets. An offset is committed when
    all below it is done. A handler that raises stalls its partition: nothing is skipped, and ``healthy`` says
    so. One that raises ``TooManyFailuresError`` ends the consumer.
    """

    def __init__(
        self,
        handler: Handler,
        connection: KafkaConnection,
        settings: ConsumerSettings,
        *,
        key_of: Callable[[RawRecord], Hashable] = by_key,
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._settings = settings
        self._key_of = key_of
        self._partitions: dict[TopicPartition, Partition] = {}
        self._stopping = asyncio.Event()
        self._progress = asyncio.Event()
        self._was_assigned = False
        self._lanes: Lanes | None = None
        self._flow: Flow | None = None
        self._commits: Commits | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._gave_up: TooManyFailuresError | None = None
        self._last_turn: float | None = None
        self._last_commit = 0.0
        self.restarts = 0
        self.commit_failures = 0

    @property
    def group(self) -> str:
        """The consumer group."""
        return self._settings.group

    @property
    def in_flight(self) -> int:
        """How many records were polled and are not done."""
        return sum(partition.waiting for partition in self._partitions.values())

    @property
    def uncommitted(self) -> int:
        """How many polled records are not covered by a watermark."""
        return sum(partition.uncommitted for partition in self._partitions.values())

    @property
    def assigned(self) -> int:
        """How many partitions are ours."""
        return len(self._partitions)

    @property
    def stalled(self) -> int:
        """How many partitions stand still because a handler leaked an error."""
        return sum(partition.state is PartitionState.STALLED for partition in self._partitions.values())

    @property
    def lag(self) -> int:
        """How many records of our partitions are not done, as far as the broker's last answers tell."""
        return sum(partition.behind(self._end_of(tp)) for tp, partition in self._partitions.items())

    @property
    def poll_age(self) -> float:
        """Seconds since the last poll; 0 before the first."""
        return 0.0 if self._last_turn is None else self._now() - self._last_turn

    @property
    def joined(self) -> bool:
        """Whether the group has given an assignment, be it an empty one."""
        return self._was_assigned

    def healthy(self, *, most_seconds: float = 60.0) -> bool:
        """Say whether the loop turned lately and no partition stalls.

        A rebalance that never ends makes it false too: the process is to be restarted then.
        """
        if self._last_turn is None or self.stalled:
            return False
        return asyncio.get_running_loop().time() - self._last_turn < most_seconds

    def stop(self) -> None:
        """Take in nothing more; ``run`` returns when what runs has ended, within the stop budget."""
        self._stopping.set()
        self._progress.set()

    async def run(self) -> None:
        """Consume until ``stop``; an error of the broker makes the consumer start afresh after a pause.

        Raises:
            TooManyFailuresError: most messages fail; what is not done stays to be done by the next start.
        """
        attempt = 0
        async with asyncio.TaskGroup() as group:
            while not self._stopping.is_set():
                started = self._now()
                try:
                    await self._serve(group)
                except KafkaError as error:
                    self.restarts += 1
                    attempt = 1 if self._now() - started > self._settings.most_backoff else attempt + 1
                    if attempt == 1:
                        logger.warning("consumer of %s starts afresh: %s", self.group, type(error).__name__)
                    await self._pause(attempt)
        if self._gave_up is not None:
            raise self._gave_up

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride] - it is awaited
        self, revoked: Iterable[TopicPartition]
    ) -> None:
        """Finish or cancel what runs for ``revoked``, commit, and forget them."""
        gone = set(revoked)
        leaving = {tp: self._partitions[tp] for tp in gone if tp in self._partitions}
        if self._lanes is not None and self._commits is not None:
            await self._lanes.drain(leaving.values(), seconds=self._settings.drain)
            await self._commits(leaving)
        for tp, partition in leaving.items():
            if self._partitions.get(tp) is partition:
                del self._partitions[tp]
        if self._flow is not None:
            self._flow.forget(gone)

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride] - it is awaited
        self, assigned: Iterable[TopicPartition]
    ) -> None:
        """Make a place for ``assigned``; records may have been here before and made it themselves."""
        self._was_assigned = True
        for tp in assigned:
            self._place_of(tp)

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        read_any_header_name()
        consumer = AIOKafkaConsumer(
            **self._settings.options(self._connection),
            partition_assignment_strategy=(StickyPartitionAssignor,),
        )
        self._consumer = consumer
        self._commits = Commits(consumer, group=self.group)
        self._lanes = Lanes(self._handler, group, on_progress=self._progress.set, on_giving_up=self._give_up)
        self._flow = Flow(
            consumer,
            max_in_flight=self._settings.max_in_flight,
            max_uncommitted=self._settings.max_uncommitted,
        )
        try:
            # In this order: start() with a subscription waits for an assignment, however long that takes.
            await self._unless_stopped(consumer.start())
            if not self._stopping.is_set():
                consumer.subscribe(list(self._settings.topics), listener=self)
            while not self._stopping.is_set():
                await self._turn(consumer)
        finally:
            await self._close(consumer)

    async def _turn(self, consumer: AIOKafkaConsumer) -> None:
        """Poll once, also while saturated: the group gives partitions away that are not polled for."""
        self._last_turn = self._now()
        free = self._flow.regulate(self._partitions) if self._flow is not None else 0
        if free:
            await self._unless_stopped(self._take(consumer, timeout_ms=_POLL_MS, max_records=free))
        else:
            self._progress.clear()
            await self._unless_stopped(self._take(consumer, timeout_ms=0))
            await self._progressed(_SATURATED_SECONDS)
        if self._commits is not None and self._now() - self._last_commit >= self._settings.commit_every:
            self._last_commit = self._now()
            await self._commits(self._partitions)
            self.commit_failures += self._commits.failures
            self._commits.failures = 0

    async def _take(self, consumer: AIOKafkaConsumer, **how: int) -> None:
        """Poll and fill the lanes; nothing is awaited between the two, where a revocation could come in."""
        polled: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = await consumer.getmany(**how)
        for tp, records in polled.items():
            partition = self._place_of(tp)
            for record in records:
                key = partition.add(raw_record(record))
                if key is not None and self._lanes is not None:
                    self._lanes.start(partition, key)

    def _place_of(self, tp: TopicPartition) -> Partition:
        """Return the progress of ``tp``, made new if need be: records can come before their assignment."""
        partition = self._partitions.get(tp)
        if partition is None or partition.state is PartitionState.CLOSED:
            partition = self._partitions[tp] = Partition(self._key_of)
        return partition

    def _end_of(self, tp: TopicPartition) -> int:
        """Return the offset after the newest record of ``tp``; 0 where nothing was fetched yet."""
        is_ours = self._consumer is not None and tp in self._consumer.assignment()
        return (self._consumer.highwater(tp) or 0) if is_ours and self._consumer is not None else 0

    async def _unless_stopped(self, call: Coroutine[Any, Any, None]) -> None:
        """Wait for ``call`` or for ``stop``: neither start() nor getmany() keeps to a timeout of its own.

        Cancelling getmany() loses nothing: it hands records out after its last await. It is done only on the
        way out, since it also ends the watch over ``max_poll_interval_ms``.
        """
        await unless(self._stopping, call)

    async def _close(self, consumer: AIOKafkaConsumer) -> None:
        settings = self._settings
        loop = asyncio.get_running_loop()
        end = loop.time() + settings.stop_budget
        if self._lanes is not None and self._commits is not None:
            # What still ran when most messages fail could only add to the dead letters.
            patience = settings.drain if self._gave_up is None else 0.0
            await self._lanes.drain(self._partitions.values(), seconds=patience)
            await self._commits(self._partitions, seconds=max(settings.stop_budget * _COMMIT_SHARE, 0.5))
        self._partitions.clear()
        self._was_assigned = False
        self._flow = None
        try:
            async with asyncio.timeout_at(max(end, loop.time() + 1.0)):
                await consumer.stop()
        except (KafkaError, TimeoutError) as error:
            logger.warning("consumer of %s did not stop cleanly: %s", self.group, type(error).__name__)

    def _give_up(self, error: TooManyFailuresError) -> None:
        if self._gave_up is None:
            logger.error("consumer of %s gives up: %s", self.group, error)
            self._gave_up = error
        self.stop()

    async def _pause(self, attempt: int) -> None:
        longest = min(self._settings.first_backoff * 2**attempt, self._settings.most_backoff)
        jittered = random.uniform(longest / 2, longest)  # noqa: S311 - spreads replicas, keeps no secret
        await self._unless_stopped(asyncio.sleep(jittered))

    async def _progressed(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._progress.wait()
        except TimeoutError:
            return

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def raw_record(record: "ConsumerRecord[Any, Any]") -> RawRecord:
    """Return ``record`` as the domain knows it, byte for byte."""
    headers = tuple((key, value if value is not None else b"") for key, value in record.headers)
    timestamp = record.timestamp if record.timestamp and record.timestamp > 0 else None
    return RawRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=headers,
        timestamp=datetime.fromtimestamp(timestamp / 1_000, UTC) if timestamp is not None else None,
    )
