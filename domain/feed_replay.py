"""Feed a replay: publish its sessions no faster than is wished, and no more at once than can be looked after.

The rules: docs/architecture/replay.md, "The tool".
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar
from uuid import UUID

from domain.errors import InfrastructureError
from domain.outbox import Headers
from domain.replays import (
    Position,
    Replay,
    ReplayProgress,
    ReplayStatus,
    ReplayStore,
    SessionRef,
    Standing,
    total_of,
)

T = TypeVar("T")

BEAT_S: Final = 1.0
_PAGE: Final = 100
_TURN_S: Final = 0.25
_COUNT_S: Final = 5.0
_UNSEEN_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRecord:
    """A conversation on its way to the replay topic; ``headers`` are its own, without those of the replay."""

    session: SessionRef
    key: bytes | None
    value: bytes
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What comes next of a source, and the position behind it; ``is_last`` when nothing comes after it.

    ``skipped`` counts what is not replayed, by the reason.
    """

    records: Sequence[ReplayRecord]
    position: Position
    skipped: Mapping[str, int] = field(default_factory=dict)
    is_last: bool = False


class ReplaySource(Protocol):
    """Where the conversations come from."""

    async def next(self, replay: Replay, *, most: int) -> Page:
        """Return at most ``most`` records behind ``replay.position``.

        Raises:
            InfrastructureError: database or broker are away; the same call may be made again.
        """
        ...

    async def left(self, replay: Replay) -> int | None:
        """Count the sessions of the whole source that nobody took in; None where that cannot be told."""
        ...


class ReplayPublisher(Protocol):
    """Publishes to the replay topic."""

    async def __call__(self, replay: Replay, records: Sequence[ReplayRecord]) -> None:
        """Return when the broker has all of ``records``.

        Raises:
            BrokerUnavailableError: it may not have them all; publishing all again changes nothing.
        """
        ...


class FeedEnd(StrEnum):
    """Why feeding ended."""

    FED = "fed"
    STOPPED = "stopped"
    TAKEN_OVER = "taken_over"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOutcome:
    """How feeding ended, and how many sessions nobody took in though they were published long ago."""

    end: FeedEnd
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedState:
    """How far feeding is; ``jobs`` is counted now and then."""

    replay: Replay
    under_way: int
    jobs: ReplayProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much at once: sessions a second (None: as fast as they end), and sessions that have not ended."""

    rate: float | None = 50.0
    ahead: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrounding:
    """Time, and somebody to tell: how far it is, and what is waited for (None: it is back)."""

    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    on_progress: Callable[[FeedState], None]
    on_waiting: Callable[[str | None], None]


class FeedReplay:
    """Publishes a replay's sessions in their order, and waits until they have ended; for one run.

    What is published is noted after the broker has it: cut off in between, at most one page comes again,
    which changes nothing. One that is paused stops within a moment.
    """

    def __init__(
        self,
        *,
        store: ReplayStore,
        source: ReplaySource,
        publish: ReplayPublisher,
        pace: Pace,
        on: Surrounding,
    ) -> None:
        self._store = store
        self._source = source
        self._publish = publish
        self._pace = pace
        self._on = on
        self._open: dict[SessionRef, float] = {}
        self._lost = 0
        self._jobs = ReplayProgress()
        self._counted_at: float | None = None
        self._away: set[str] = set()

    async def __call__(self, replay: Replay, feeder: UUID, *, waits: bool) -> FeedOutcome:
        """Feed ``replay`` from its position on, as the ``feeder`` that the store knows.

        With ``waits``, return when the jobs that it ordered have ended, too.
        """
        is_last, due = False, self._on.clock()
        while not is_last:
            if (end := await self._beaten(replay, feeder)) is not None:
                return FeedOutcome(end=end, missing=self._lost)
            if (left := due - self._on.clock()) > 0:
                await self._on.sleep(min(left, BEAT_S))
                continue
            began = self._on.clock()
            page = await self._tried("turn", partial(self._turn, replay))
            if page is None:
                await self._on.sleep(_TURN_S)
                continue
            replay, is_last = _behind(replay, page), page.is_last
            self._tell(replay, len(self._open))
            due = began + (len(page.records) / self._pace.rate if self._pace.rate is not None else 0.0)
        if not waits:
            return FeedOutcome(end=FeedEnd.FED, missing=self._lost)
        return await self._until_ended(replay, feeder)

    async def _turn(self, replay: Replay) -> Page | None:
        """Publish the next page, if there is room for it."""
        await self._look(replay)
        room = min(self._pace.ahead - len(self._open), self._at_once())
        if room <= 0:
            self._tell(replay, len(self._open))
            return None
        page = await self._source.next(replay, most=room)
        if page.records:
            await self._publish(replay, page.records)
        await self._store.advance(
            replay.replay_id, position=page.position, published=len(page.records), skipped=page.skipped
        )
        now = self._on.clock()
        self._open.update({record.session: now for record in page.records})
        return page

    async def _look(self, replay: Replay) -> None:
        """Forget the sessions that have ended, and those that nobody took in for long, which are counted."""
        now = self._on.clock()
        sessions = list(self._open)
        found = await self._store.standing(replay, sessions) if sessions else ()
        for session, standing in zip(sessions, found, strict=True):
            is_lost = standing is Standing.UNSEEN and now - self._open[session] > _UNSEEN_S
            self._lost += is_lost
            if standing is Standing.ENDED or is_lost:
                del self._open[session]
        if self._counted_at is None or now - self._counted_at >= _COUNT_S:
            self._counted_at, self._jobs = now, await self._store.progress(replay.replay_id)

    async def _until_ended(self, replay: Replay, feeder: UUID) -> FeedOutcome:
        left, since = 0, self._on.clock()
        while True:
            if (end := await self._beaten(replay, feeder)) is not None:
                return FeedOutcome(end=end, missing=self._lost)
            found = await self._tried("end", partial(self._remaining, replay))
            if found is not None:
                under_way, not_taken = found
                self._tell(replay, under_way)
                if not_taken is not None and not_taken != left:
                    left, since = not_taken, self._on.clock()
                is_long = not_taken is None or self._on.clock() - since > _UNSEEN_S
                if not under_way and (not left or is_long):
                    return FeedOutcome(end=FeedEnd.FED, missing=self._lost if not_taken is None else left)
            await self._on.sleep(BEAT_S)

    async def _remaining(self, replay: Replay) -> tuple[int, int | None]:
        """Count the sessions that are to end, and when there are none, those that nobody took in."""
        await self._look(replay)
        self._jobs = await self._store.progress(replay.replay_id)
        under_way = max(len(self._open), self._jobs.open)
        return under_way, None if under_way else await self._source.left(replay)

    async def _beaten(self, replay: Replay, feeder: UUID) -> FeedEnd | None:
        while (told := await self._tried("beat", partial(self._beat, replay, feeder))) is None:
            pass
        (status,) = told
        if status is None:
            return FeedEnd.TAKEN_OVER
        return None if status is ReplayStatus.RUNNING else FeedEnd.STOPPED

    async def _beat(self, replay: Replay, feeder: UUID) -> tuple[ReplayStatus | None]:
        return (await self._store.beat(replay.replay_id, feeder),)

    async def _tried(self, name: str, call: Callable[[], Awaitable[T]]) -> T | None:
        """Return what ``call`` returns; None after a moment when database or broker are away.

        That is told once, however often it is tried, and so is that it is over: when the calls of each
        ``name`` that failed have come through.
        """
        try:
            result = await call()
        except InfrastructureError as error:
            if not self._away:
                self._on.on_waiting(str(error))
            self._away.add(name)
            await self._on.sleep(BEAT_S)
            return None
        if name in self._away:
            self._away.discard(name)
            if not self._away:
                self._on.on_waiting(None)
        return result

    def _tell(self, replay: Replay, under_way: int) -> None:
        self._on.on_progress(FeedState(replay=replay, under_way=under_way, jobs=self._jobs))

    def _at_once(self) -> int:
        """Return how many sessions go into one page, so that a low rate does not come in bursts."""
        return _PAGE if self._pace.rate is None else min(max(int(self._pace.rate), 1), _PAGE)


def _behind(replay: Replay, page: Page) -> Replay:
    return replace(
        replay,
        position=page.position,
        published=replay.published + len(page.records),
        skipped=total_of(replay.skipped, page.skipped),
    )
