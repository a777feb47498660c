"""Feeding a replay: every session at least once, never too many open, wherever it is cut off."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import BrokerUnavailableError, StorageUnavailableError
from domain.feed_replay import (
    FeedEnd,
    FeedOutcome,
    FeedReplay,
    FeedState,
    Pace,
    Page,
    ReplayRecord,
    Surrounding,
)
from domain.replays import (
    Position,
    Replay,
    ReplayMode,
    ReplayProgress,
    ReplayStatus,
    SessionRef,
    Standing,
    StoredSessions,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class CutOffError(Exception):
    """The command was killed here."""


@dataclass
class World:
    """A store, a source, a broker and a clock, each of which may fail where the test says."""

    count: int
    ends_after: float = 1.0
    now: float = 0.0
    published: list[UUID] = field(default_factory=list)
    open: dict[UUID, float] = field(default_factory=dict)
    most_open: int = 0
    replay: Replay | None = None
    status: ReplayStatus | None = ReplayStatus.RUNNING
    status_after_publishing: tuple[ReplayStatus | None, ...] = ()
    calls: int = 0
    cut_at: int | None = None
    fail: dict[int, Exception] = field(default_factory=dict)
    told: list[str | None] = field(default_factory=list)
    states: list[FeedState] = field(default_factory=list)
    never_taken_in: int = 0
    knows_what_is_left: bool = False
    broker_is_away: bool = False
    paused_at: float | None = None

    def __post_init__(self) -> None:
        self.sessions = [uuid4() for _ in range(self.count)]
        self.replay = Replay(
            replay_id="r",
            generation="r",
            mode=ReplayMode.SHADOW,
            status=ReplayStatus.RUNNING,
            source=StoredSessions(until=NOW),
            rate=None,
            total=self.count,
            position=None,
            published=0,
            skipped={},
            started_at=NOW,
        )

    def step(self) -> None:
        """Count a call of the outside, and fail or die at the one that the test names."""
        self.calls += 1
        if self.calls == self.cut_at:
            raise CutOffError
        if (error := self.fail.pop(self.calls, None)) is not None:
            raise error

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.paused_at is not None and self.now >= self.paused_at:
            self.status = ReplayStatus.PAUSED
        await asyncio.sleep(0)

    async def next(self, replay: Replay, *, most: int) -> Page:
        self.step()
        at = int((replay.position or {}).get("at", 0))
        found = self.sessions[at : at + most]
        records = [ReplayRecord(session=("t", one), key=b"k", value=b"v") for one in found]
        return Page(records=records, position={"at": at + len(found)}, is_last=len(found) < most)

    async def left(self, replay: Replay) -> int | None:
        return self.never_taken_in if self.knows_what_is_left else None

    async def publish(self, _replay: Replay, records: Sequence[ReplayRecord]) -> None:
        if self.broker_is_away:
            raise BrokerUnavailableError("away")
        for record in records:
            self.published.append(record.session[1])
            self.open.setdefault(record.session[1], self.now)
        for status in self.status_after_publishing:
            self.status = status
        self.most_open = max(
            self.most_open, sum(self.now - at < self.ends_after for at in self.open.values())
        )
        self.step()

    async def advance(
        self, replay_id: str, *, position: Position, published: int, skipped: Mapping[str, int]
    ) -> None:
        self.step()
        assert self.replay is not None
        self.replay = replace(self.replay, position=position, published=self.replay.published + published)

    async def standing(self, replay: Replay, sessions: Sequence[SessionRef]) -> Sequence[Standing]:
        self.step()
        return [self.standing_of(one) for _, one in sessions]

    def standing_of(self, session: UUID) -> Standing:
        if session in self.sessions[: self.never_taken_in]:
            return Standing.UNSEEN
        return Standing.ENDED if self.now - self.open[session] >= self.ends_after else Standing.OPEN

    async def progress(self, replay_id: str) -> ReplayProgress:
        self.step()
        still = sum(self.now - at < self.ends_after for at in self.open.values())
        return ReplayProgress(jobs={"running": still})

    async def beat(self, replay_id: str, feeder: UUID) -> ReplayStatus | None:
        self.step()
        return self.status

    async def create(self, replay: Replay) -> None: ...
    async def get(self, replay_id: str) -> Replay | None:
        return self.replay

    async def newest(self, *, most: int) -> Sequence[Replay]:
        return []

    async def move(
        self, replay_id: str, *, start: Collection[ReplayStatus], to: ReplayStatus
    ) -> ReplayStatus | None:
        return None

    async def begin_feeding(self, replay_id: str, feeder: UUID) -> bool:
        return True

    async def end_feeding(self, replay_id: str, feeder: UUID) -> None: ...
    async def next_sessions(self, replay: Replay, *, most: int) -> Sequence[Any]:
        return []

    async def count_sessions(self, mode: ReplayMode, label: str, source: StoredSessions) -> int:
        return 0

    async def feed(self, pace: Pace | None = None) -> FeedOutcome:
        feed = FeedReplay(
            store=self,
            source=self,
            publish=_Publish(self),
            pace=pace or Pace(rate=None, ahead=7),
            on=Surrounding(
                clock=lambda: self.now,
                sleep=self.sleep,
                on_progress=self.states.append,
                on_waiting=self.told.append,
            ),
        )
        assert self.replay is not None
        return await feed(self.replay, uuid4(), waits=True)


@dataclass(frozen=True)
class _Publish:
    world: World

    async def __call__(self, replay: Replay, records: Sequence[ReplayRecord]) -> None:
        await self.world.publish(replay, records)


@given(count=st.integers(0, 60), cuts=st.lists(st.integers(1, 40), max_size=4), ahead=st.integers(1, 12))
def test_cut_off_anywhere_every_session_comes_and_few_are_open(
    count: int, cuts: list[int], ahead: int
) -> None:
    world = World(count)

    async def run() -> None:
        for cut in [*cuts, None]:
            world.calls, world.cut_at = 0, cut
            try:
                assert await world.feed(Pace(rate=None, ahead=ahead)) == FeedOutcome(end=FeedEnd.FED)
            except CutOffError:
                # Whoever goes on later knows nothing of what was open.
                world.now += world.ends_after

    asyncio.run(run())

    assert set(world.published) == set(world.sessions)
    assert list(dict.fromkeys(world.published)) == world.sessions
    assert len(world.published) - count <= len(cuts) * ahead
    assert world.most_open <= ahead


@pytest.mark.anyio
async def test_it_publishes_no_faster_than_the_rate() -> None:
    world = World(100, ends_after=0.0)

    await world.feed(Pace(rate=20.0, ahead=1000))

    assert 4.0 <= world.now < 7.0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "end"),
    [
        (ReplayStatus.PAUSED, FeedEnd.STOPPED),
        (ReplayStatus.DISCARDED, FeedEnd.STOPPED),
        (None, FeedEnd.TAKEN_OVER),
    ],
)
async def test_one_that_is_paused_or_taken_over_stops(status: ReplayStatus | None, end: FeedEnd) -> None:
    world = World(1000)
    world.status_after_publishing = (status,)

    assert (await world.feed()).end is end
    assert len(world.published) == 7


@pytest.mark.anyio
async def test_an_outage_is_waited_for_in_place_and_told_once() -> None:
    world = World(20)
    away = [StorageUnavailableError("away"), StorageUnavailableError("away"), BrokerUnavailableError("gone")]
    world.fail = {3: away[0], 4: away[1], 14: away[2]}

    assert (await world.feed()).end is FeedEnd.FED

    assert set(world.published) == set(world.sessions)
    assert [one for one in world.told if one is not None] == ["away", "gone"]
    assert world.told.count(None) == 2


@pytest.mark.anyio
async def test_one_that_waits_for_the_broker_can_be_paused() -> None:
    world = World(20, broker_is_away=True, paused_at=30.0)

    assert (await world.feed()).end is FeedEnd.STOPPED

    assert world.now < 35.0
    assert world.told == ["away"]


@pytest.mark.anyio
async def test_a_slow_one_stops_within_a_moment_of_being_paused() -> None:
    world = World(20, paused_at=30.0)

    assert (await world.feed(Pace(rate=0.01, ahead=5))).end is FeedEnd.STOPPED

    assert 30.0 <= world.now <= 31.0
    assert len(world.published) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("knows", [True, False])
async def test_what_nobody_takes_in_holds_the_rest_up_for_a_minute_and_is_counted(knows: bool) -> None:
    world = World(20, never_taken_in=3, knows_what_is_left=knows)

    outcome = await world.feed(Pace(rate=None, ahead=4))

    assert outcome == FeedOutcome(end=FeedEnd.FED, missing=3)
    assert set(world.published) == set(world.sessions)
    assert world.now < 150.0


@pytest.mark.anyio
async def test_what_is_published_and_done_is_told_on_the_way() -> None:
    world = World(20)

    await world.feed()

    published = [state.replay.published for state in world.states]
    assert published == sorted(published)
    assert published[-1] == 20
    assert {state.under_way for state in world.states} >= {0, 7}
