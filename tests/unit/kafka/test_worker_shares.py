"""Workers are shared by weight among lanes and in turns among tenants, and none is ever lost."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.worker_shares import Bounds, LaneShare, WorkerShares
from schemas.topics import LANES, LaneName

WEIGHTS: Final[dict[LaneName, int]] = {"priority": 8, "standard": 4, "bulk": 2, "replay": 1}
WORKERS: Final = 8
MOST_OF_REPLAY: Final = 6
OF_ONE: Final = 3
LANE: Final = st.sampled_from(LANES)
TENANT: Final = st.sampled_from(["a", "b", "c"])

Step = tuple[str, LaneName, str, int]


def shares(*, workers: int = WORKERS, of_one: int = OF_ONE) -> WorkerShares:
    return WorkerShares(
        workers,
        {
            lane: Bounds(
                weight=weight,
                workers=min(MOST_OF_REPLAY, workers) if lane == "replay" else workers,
                of_one=of_one,
            )
            for lane, weight in WEIGHTS.items()
        },
    )


class Play:
    """Jobs that ask for workers, and end or are cancelled when they are told."""

    def __init__(self, given: WorkerShares) -> None:
        self.shares = given
        self.jobs: list[asyncio.Task[None]] = []
        self.begun: list[tuple[int, LaneName, str]] = []
        self.running: Counter[tuple[LaneName, str]] = Counter()
        self._ends: list[asyncio.Event] = []

    def ask(self, lane: LaneName, tenant: str) -> None:
        self._ends.append(asyncio.Event())
        self.jobs.append(asyncio.create_task(self._work(len(self.jobs), lane, tenant)))

    def end(self, number: int) -> None:
        self._ends[number].set()

    async def over(self) -> None:
        for number, job in enumerate(self.jobs):
            self.end(number)
            if number % 3 == 0:
                job.cancel()
        # Whoever waits for a worker that was lost waits for ever.
        async with asyncio.timeout(5):
            await asyncio.gather(*self.jobs, return_exceptions=True)

    async def ends_of(self, jobs: int) -> None:
        """End one job after the other as they begin, until ``jobs`` of them have begun."""
        while len(self.begun) < jobs:
            self.end(self.begun[-1][0])
            await settled()

    async def _work(self, number: int, lane: LaneName, tenant: str) -> None:
        async with self.shares.worker(lane, tenant):
            self.begun.append((number, lane, tenant))
            self.running[lane, tenant] += 1
            try:
                await self._ends[number].wait()
            finally:
                self.running[lane, tenant] -= 1


async def settled() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "end", "cancel"]), LANE, TENANT, st.integers(0, 60)), max_size=80
)


@given(steps=STEPS)
def test_no_bound_is_passed_and_no_worker_is_lost_whatever_is_cancelled(steps: Sequence[Step]) -> None:
    async def run() -> None:
        play = Play(shares())
        for do, lane, tenant, number in steps:
            if do == "ask":
                play.ask(lane, tenant)
            elif play.jobs:
                place = number % len(play.jobs)
                play.jobs[place].cancel() if do == "cancel" else play.end(place)
            # Some steps come before, or in the middle of, what the step before has set going.
            for _ in range(number % 4):
                await asyncio.sleep(0)
            _within_bounds(play)
        await settled()
        _nobody_waits_for_nothing(play)
        await play.over()
        assert [play.shares.busy(lane) + play.shares.waiting(lane) for lane in LANES] == [0] * len(LANES)
        await _all_workers_are_there(play)

    asyncio.run(run())


def _within_bounds(play: Play) -> None:
    assert play.running.total() <= sum(play.shares.busy(lane) for lane in LANES) <= WORKERS
    assert play.shares.busy("replay") <= MOST_OF_REPLAY
    assert max(play.running.values(), default=0) <= OF_ONE


def _nobody_waits_for_nothing(play: Play) -> None:
    """While a worker is free, whoever waits is at a bound."""
    if sum(play.shares.busy(lane) for lane in LANES) == WORKERS:
        return
    for lane in LANES:
        if play.shares.waiting(lane) and play.shares.busy(lane) < MOST_OF_REPLAY:
            assert max(count for (of, _), count in play.running.items() if of == lane) == OF_ONE


async def _all_workers_are_there(play: Play) -> None:
    again = Play(play.shares)
    for tenant in ("a", "b", "c"):
        for _ in range(OF_ONE):
            again.ask("bulk", tenant)
    await settled()
    assert play.shares.busy("bulk") == WORKERS
    await again.over()


@pytest.mark.parametrize("turns", range(6))
def test_a_job_that_is_cancelled_when_its_worker_is_on_its_way_gives_it_back(turns: int) -> None:
    async def run() -> int:
        play = Play(shares(workers=1))
        play.ask("bulk", "a")
        play.ask("bulk", "b")
        await settled()
        play.end(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        play.jobs[1].cancel()
        play.ask("replay", "c")
        await settled()
        await settled()
        busy = play.shares.busy("replay")
        await play.over()
        return busy

    assert asyncio.run(run()) == 1


@given(order=st.permutations(LANES))
def test_lanes_that_all_have_work_get_workers_by_their_weights(order: Sequence[LaneName]) -> None:
    async def run() -> Counter[LaneName]:
        play = Play(shares(workers=1))
        for _ in range(100):
            for lane in order:
                play.ask(lane, "a")
        await settled()
        await play.ends_of(150)
        await play.over()
        return Counter(lane for _, lane, _ in play.begun[:150])

    counted = asyncio.run(run())

    assert [round(counted[lane] / 10) for lane in LANES] == [8, 4, 2, 1]


@given(waiting=st.lists(st.tuples(LANE, TENANT), min_size=1, max_size=60), lane=LANE)
def test_no_lane_waits_longer_than_its_weight_says(
    waiting: Sequence[tuple[LaneName, str]], lane: LaneName
) -> None:
    async def run() -> int:
        play = Play(shares(workers=1))
        for one in waiting:
            play.ask(*one)
        await settled()
        play.ask(lane, "late")
        await play.ends_of(len(waiting) + 1)
        await play.over()
        place = [(of, tenant) for _, of, tenant in play.begun].index((lane, "late"))
        return sum(of != lane for _, of, _ in play.begun[1:place])

    # Between two workers of a lane the others get what their weights are worth, and one each for being there.
    turns = 1 + sum(one[0] == lane for one in waiting)
    others = sum(WEIGHTS.values()) - WEIGHTS[lane]
    assert asyncio.run(run()) <= turns * others / WEIGHTS[lane] + len(LANES)


def test_a_lane_that_comes_late_is_not_paid_for_the_time_before() -> None:
    async def run() -> Counter[LaneName]:
        play = Play(shares(workers=1))
        for _ in range(60):
            play.ask("priority", "a")
        await settled()
        await play.ends_of(40)
        for _ in range(20):
            play.ask("replay", "a")
        await play.ends_of(58)
        await play.over()
        return Counter(lane for _, lane, _ in play.begun[40:58])

    assert asyncio.run(run())["replay"] == 2


def test_tenants_of_a_lane_have_turns() -> None:
    async def run() -> list[str]:
        play = Play(shares(workers=1))
        for tenant in ("busy", "busy", "busy", "quiet"):
            play.ask("bulk", tenant)
        await settled()
        await play.ends_of(4)
        await play.over()
        return [tenant for _, _, tenant in play.begun]

    assert asyncio.run(run()) == ["busy", "busy", "quiet", "busy"]


class Lane:
    """A lane of 16 places with ``unread`` records, and a clock."""

    def __init__(self, unread: int = 0) -> None:
        self.unread = unread
        self.now = 0.0
        self.share = LaneShare(shares(workers=1), "bulk", in_hand=16, clock=lambda: self.now)
        self.share.unread = lambda: self.unread
        self._jobs: list[asyncio.Task[None]] = []

    async def take(self, tenant: str) -> bool:
        """Begin a job of ``tenant`` if that is allowed; it never ends."""
        if not self.share.admits(tenant):
            return False
        self._jobs.append(asyncio.create_task(self._work(tenant)))
        await asyncio.sleep(0)
        return True

    async def finish(self) -> None:
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    async def _work(self, tenant: str) -> None:
        async with self.share.worker(tenant):
            await asyncio.Event().wait()


@pytest.mark.anyio
async def test_however_many_tenants_have_more_than_enough_there_is_a_place_for_the_next() -> None:
    lane = Lane()
    taken = [sum([await lane.take(f"busy{number}") for _ in range(100)]) for number in range(6)]

    assert taken[0] == 8
    assert await lane.take("quiet")
    await lane.finish()


@pytest.mark.anyio
async def test_a_tenant_with_enough_starts_nothing_more_until_its_lane_is_read_to_the_end() -> None:
    lane = Lane(unread=1_000)
    assert sum([await lane.take("busy") for _ in range(20)]) == 8
    await lane.finish()

    while_more_is_there = await lane.take("busy"), await lane.take("quiet")
    lane.unread = 0
    at_the_end = await lane.take("busy")
    lane.now = 0.3
    after_it = await lane.take("busy")
    await lane.finish()

    assert (while_more_is_there, at_the_end, after_it) == ((False, True), False, True)


@pytest.mark.anyio
async def test_a_lane_that_is_never_read_to_its_end_shuts_nobody_out() -> None:
    lane = Lane(unread=1_000)
    assert sum([await lane.take("busy") for _ in range(20)]) == 8
    await lane.finish()
    lane.now = 31.0

    assert await lane.take("busy")
    await lane.finish()


@pytest.mark.anyio
async def test_a_tenant_goes_on_in_a_lane_that_keeps_up() -> None:
    lane = Lane(unread=5)
    assert sum([await lane.take("busy") for _ in range(20)]) == 8
    await lane.finish()

    assert await lane.take("busy")
    await lane.finish()
