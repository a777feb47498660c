"""Publish what waits in the outbox, in order per key, at least once."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from domain.errors import BrokerUnavailableError, InfrastructureError, PermanentError
from domain.outbox import Headers, OutboxRecord, WaitingRecord
from producers.stopping import unless
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

_WAVE_BYTES: Final = 400_000
_FOLLOW_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 1.0
_MOST_BACKOFF: Final = 5.0
_OVERHEAD_BYTES: Final = 512

Lane = tuple[str, bytes | None]


class OutboxSource(Protocol):
    """Where the relay takes its rows from; one relay of all replicas leads."""

    async def lead(self) -> bool:
        """Take the lead or keep it; say whether it is ours.

        Raises:
            StorageUnavailableError: nobody knows; whoever led has lost it.
        """
        ...

    async def turn(self, done: Sequence[int]) -> Sequence[WaitingRecord]:
        """Delete the rows ``done`` and return the due ones that come next, by id, 500 at most.

        Raises:
            StorageUnavailableError: the rows ``done`` may still be there.
        """
        ...

    async def wait(self, seconds: float) -> None:
        """Return when rows may have come, or after ``seconds``."""
        ...

    async def resign(self) -> None:
        """Give the lead away, and the connection that holds it."""
        ...


class Publisher(Protocol):
    """Puts records into batches and says which are safe (``producers.connection.Producer``)."""

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Awaitable[Any]:
        """Put one record into the next batch."""
        ...

    async def settle(self, sent: Sequence[Awaitable[Any]]) -> list[bool]:
        """Wait for every acknowledgement and say which came."""
        ...


class OutboxRelay:
    """Moves rows of the outbox to the broker while it leads.

    A row is deleted after its acknowledgement; what a crash leaves in between is sent again. A later row of a
    key is never sent when an earlier one has failed.
    """

    def __init__(
        self,
        source: OutboxSource,
        producer: Publisher,
        *,
        on_sent: Callable[[Sequence[WaitingRecord]], None] = lambda _records: None,
    ) -> None:
        self._source = source
        self._producer = producer
        self._on_sent = on_sent
        self._stopping = asyncio.Event()
        self._last_turn: float | None = None
        self._unsent = Notice(logger)
        self.leads = False
        self.failures = 0

    def healthy(self, *, most_seconds: float = 60.0) -> bool:
        """Say whether the relay turned lately, as the leader or waiting to be it."""
        now = asyncio.get_running_loop().time()
        return self._last_turn is not None and now - self._last_turn < most_seconds

    def stop(self) -> None:
        """End after the turn that runs."""
        self._stopping.set()

    async def run(self) -> None:
        """Relay until ``stop``."""
        done: list[int] = []
        failed = 0
        try:
            while not self._stopping.is_set():
                try:
                    done = await self._turn(done)
                    failed = 0
                except InfrastructureError as error:
                    self.leads = False
                    failed += 1
                    self.failures += 1
                    if failed == 1:
                        logger.warning("the relay waits: %s", type(error).__name__)
                    await self._pause(_backoff(failed))
        finally:
            self.leads = False
            await self._end(done)

    async def _turn(self, done: Sequence[int]) -> list[int]:
        """Delete what was sent, read what is due, send it; return what was acknowledged."""
        # A lost lead shows as an error of the turn, so it is not asked for again every time.
        self.leads = self.leads or await self._source.lead()
        if not self.leads:
            self._turned()
            await self._pause(_FOLLOW_SECONDS)
            return []
        records = await self._source.turn(done)
        self._turned()
        if not records:
            await unless(self._stopping, self._source.wait(_WAIT_SECONDS))
            return []
        sent = await self._sent(records)
        if not sent:
            self.failures += 1
            await self._pause(_backoff(1))
        return sent

    async def _sent(self, records: Sequence[WaitingRecord]) -> list[int]:
        blocked: set[Lane] = set()
        sent: list[WaitingRecord] = []
        for wave in _waves(records):
            ready = [waiting for waiting in wave if _lane(waiting.record) not in blocked]
            sent += await self._wave(ready, blocked)
        if not blocked:
            self._unsent.is_over()
        self._on_sent(sent)
        return [waiting.id for waiting in sent]

    async def _wave(self, wave: Sequence[WaitingRecord], blocked: set[Lane]) -> list[WaitingRecord]:
        """Send ``wave``, which is one batch per partition, and add the keys of what failed to ``blocked``."""
        pending: list[tuple[WaitingRecord, Awaitable[Any]]] = []
        for waiting in wave:
            if _lane(waiting.record) in blocked:
                continue
            try:
                pending.append((waiting, await self._enqueue(waiting.record)))
            except (BrokerUnavailableError, PermanentError) as error:
                self._unsent.begins(
                    "row %d of the outbox was not taken: %s", waiting.id, type(error).__name__
                )
                blocked.add(_lane(waiting.record))
        try:
            acknowledged = await self._producer.settle([sending for _, sending in pending])
        except BrokerUnavailableError as error:
            self._unsent.begins("no row of the outbox was acknowledged: %s", error)
            acknowledged = [False] * len(pending)
        sent: list[WaitingRecord] = []
        for (waiting, _), is_safe in zip(pending, acknowledged, strict=True):
            if not is_safe:
                blocked.add(_lane(waiting.record))
            elif _lane(waiting.record) not in blocked:
                sent.append(waiting)
        return sent

    async def _enqueue(self, record: OutboxRecord) -> Awaitable[Any]:
        return await self._producer.enqueue(
            record.topic, record.value, key=record.key, headers=record.headers
        )

    async def _end(self, done: Sequence[int]) -> None:
        try:
            if done:
                await self._source.turn(done)
            await self._source.resign()
        except InfrastructureError as error:
            logger.warning("what was sent last may be sent again: %s", type(error).__name__)

    def _turned(self) -> None:
        self._last_turn = asyncio.get_running_loop().time()

    async def _pause(self, seconds: float) -> None:
        await unless(self._stopping, asyncio.sleep(seconds))


def _lane(record: OutboxRecord) -> Lane:
    return record.topic, record.key


def _waves(records: Sequence[WaitingRecord]) -> Iterable[Sequence[WaitingRecord]]:
    """Cut ``records`` so that what a wave puts on a partition is one batch, which fails as a whole."""
    wave: list[WaitingRecord] = []
    size = 0
    for waiting in records:
        own = _OVERHEAD_BYTES + len(waiting.record.value or b"")
        own += sum(len(name) + len(value) for name, value in waiting.record.headers)
        if wave and size + own > _WAVE_BYTES:
            yield wave
            wave, size = [], 0
        wave.append(waiting)
        size += own
    if wave:
        yield wave


def _backoff(attempt: int) -> float:
    longest = min(0.25 * 2**attempt, _MOST_BACKOFF)
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads replicas, keeps no secret
