"""Feed a replay: publish its sessions no faster than is wished, and no more at once than can be looked after.

The rules: docs/architecture/replay.md, "The tool".
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar
from uuid import UUID

from domain.errors import InfrastructureError
from domain.outbox import Headers
from domain.replays import Position, Replay, ReplayStatus, ReplayStore, SessionRef, Standing

T = TypeVar("T")

BEAT_S: Final = 1.0
_PAGE: Final = 100
_TURN_S: Final = 0.25
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
    """What comes next of a source, and the position behind it; ``is_last`` when nothing comes after it."""

    records: Sequence[ReplayRecord]
    position: Position
    skipped: int = 0
    is_last: bool = False


class ReplaySource(Protocol):
    """Where the conversations come from."""

    async def next(self, replay: Replay, *, most: int) -> Page:
        """Return at most ``most`` records behind ``replay.position``.

        Raises:
            InfrastructureError: database or broker are away; the same call may be made again.
        """
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
class Pace:
    """How much at once: sessions a second (None: as fast as they end), and sessions that have not ended."""

    rate: float | None = 50.0
    ahead: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrounding:
    """Time, and somebody to tell: what is published so far, and what is waited for (None: it is back)."""

    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    on_progress: Callable[[Replay, int], None]
    on_waiting: Callable[[str | None], None]


class FeedReplay:
    """Publishes a replay's sessions in their order, and waits until they have ended.

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
        self._is_waiting = False

    async def __call__(self, replay: Replay, feeder: UUID, *, waits: bool) -> FeedEnd:
        """Feed ``replay`` from its position on, as the ``feeder`` that the store knows.

        With ``waits``, return when the jobs that it ordered have ended, too.
        """
        is_last = False
        while not is_last:
            if (end := await self._beaten(replay, feeder)) is not None:
                return end
            began = self._on.clock()
            page = await self._patiently(partial(self._turn, replay))
            if page is None:
                await self._on.sleep(_TURN_S)
                continue
            replay, is_last = _behind(replay, page), page.is_last
            self._on.on_progress(replay, len(self._open))
            await self._keep_pace(len(page.records), since=began)
        return await self._until_ended(replay, feeder) if waits else FeedEnd.FED

    async def _turn(self, replay: Replay) -> Page | None:
        """Publish the next page, if there is room for it."""
        await self._look(replay)
        room = min(self._pace.ahead - len(self._open), _PAGE, self._at_once())
        if room <= 0:
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
        """Forget the sessions that have ended, and those that nobody took in for long: they have died."""
        if not self._open:
            return
        sessions = list(self._open)
        now = self._on.clock()
        for session, standing in zip(sessions, await self._store.standing(replay, sessions), strict=True):
            is_lost = standing is Standing.UNSEEN and now - self._open[session] > _UNSEEN_S
            if standing is Standing.ENDED or is_lost:
                del self._open[session]

    async def _until_ended(self, replay: Replay, feeder: UUID) -> FeedEnd:
        while True:
            if (end := await self._beaten(replay, feeder)) is not None:
                return end
            await self._patiently(lambda: self._look(replay))
            progress = await self._patiently(lambda: self._store.progress(replay.replay_id))
            if not self._open and not progress.open:
                return FeedEnd.FED
            self._on.on_progress(replay, max(len(self._open), progress.open))
            await self._on.sleep(BEAT_S)

    async def _beaten(self, replay: Replay, feeder: UUID) -> FeedEnd | None:
        status = await self._patiently(lambda: self._store.beat(replay.replay_id, feeder))
        if status is None:
            return FeedEnd.TAKEN_OVER
        return None if status is ReplayStatus.RUNNING else FeedEnd.STOPPED

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Wait in place while the database or the broker is away, and say so once."""
        while True:
            try:
                result = await call()
            except InfrastructureError as error:
                if not self._is_waiting:
                    self._on.on_waiting(str(error))
                self._is_waiting = True
                await self._on.sleep(BEAT_S)
                continue
            if self._is_waiting:
                self._is_waiting = False
                self._on.on_waiting(None)
            return result

    def _at_once(self) -> int:
        """Return how many sessions go into one page, so that a low rate does not come in bursts."""
        return _PAGE if self._pace.rate is None else max(int(self._pace.rate), 1)

    async def _keep_pace(self, published: int, *, since: float) -> None:
        if self._pace.rate is None or not published:
            return
        due = since + published / self._pace.rate
        left = due - self._on.clock()
        if left > 0:
            await self._on.sleep(left)


def _behind(replay: Replay, page: Page) -> Replay:
    return replace(
        replay,
        position=page.position,
        published=replay.published + len(page.records),
        skipped=replay.skipped + page.skipped,
    )
