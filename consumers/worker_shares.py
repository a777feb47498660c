"""Share the workers of a process among the lanes of jobs, and in a lane among its tenants.

The rules that this keeps: docs/architecture/fairness.md.
"""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from schemas.topics import LaneName

_LONGEST_PAUSE_S: Final = 30.0
_AT_END_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a lane may hold at once: ``workers`` in all, and ``of_one`` for one tenant."""

    weight: int
    workers: int
    of_one: int


class _Lane:
    """The callers of one lane that wait, in turns by tenant, and the workers that its tenants hold."""

    def __init__(self, bounds: Bounds) -> None:
        self.stride = 1.0 / bounds.weight
        self.reached = 0.0
        self.waiting = 0
        self._bounds = bounds
        self._held: Counter[str] = Counter()
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        # Tenants that hold what one may hold have no turn until they give something back.
        self._full: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def busy(self) -> int:
        """How many workers the lane holds."""
        return self._held.total()

    @property
    def is_ready(self) -> bool:
        """Whether somebody waits here who may have a worker."""
        return bool(self._turns) and self.busy < self._bounds.workers

    def add(self, tenant: str, caller: "asyncio.Future[None]") -> None:
        """Let ``caller`` wait behind those of its tenant."""
        is_full = self._held[tenant] >= self._bounds.of_one
        (self._full if is_full else self._turns).setdefault(tenant, deque()).append(caller)
        self.waiting += 1

    def serve(self) -> bool:
        """Give a worker to the tenant whose turn it is; its next turn comes after all others.

        Nothing is given to a caller that was cancelled and has not come to say so.
        """
        tenant, callers = self._turns.popitem(last=False)
        caller = callers.popleft()
        self.waiting -= 1
        is_given = not caller.cancelled()
        if is_given:
            self._held[tenant] += 1
            caller.set_result(None)
        if callers:
            is_full = self._held[tenant] >= self._bounds.of_one
            (self._full if is_full else self._turns)[tenant] = callers
        return is_given

    def give_back(self, tenant: str) -> None:
        """Take back a worker of ``tenant``."""
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        if tenant in self._full:
            self._turns[tenant] = self._full.pop(tenant)

    def drop(self, tenant: str, caller: "asyncio.Future[None]") -> None:
        """Forget a caller that waits no more."""
        places = self._full if tenant in self._full else self._turns
        callers = places.get(tenant)
        if callers is None or caller not in callers:
            return
        callers.remove(caller)
        if not callers:
            del places[tenant]
        self.waiting -= 1


class WorkerShares:
    """Hands out ``workers``, one a job, to lanes by their weights, and never more than there are.

    Stride scheduling: each worker costs a lane the inverse of its weight, and of the lanes with work the one
    that has paid the least is next. So none is left out, and while all have work they get workers in
    proportion. In a lane tenants have turns.
    """

    def __init__(self, workers: int, lanes: Mapping[LaneName, Bounds]) -> None:
        self._lanes: dict[LaneName, _Lane] = {name: _Lane(bounds) for name, bounds in lanes.items()}
        self._free = workers
        self._reached = 0.0

    def busy(self, lane: LaneName) -> int:
        """Return how many workers ``lane`` holds."""
        return self._lanes[lane].busy

    def waiting(self, lane: LaneName) -> int:
        """Return how many jobs of ``lane`` wait for a worker."""
        return self._lanes[lane].waiting

    @asynccontextmanager
    async def worker(self, lane: LaneName, tenant: str) -> AsyncGenerator[None]:
        """Hold one worker; wait until it is the turn of ``lane``, and in it of ``tenant``."""
        of_lane = self._lanes[lane]
        await self._taken(of_lane, tenant)
        try:
            yield
        finally:
            self._give_back(of_lane, tenant)

    async def _taken(self, lane: _Lane, tenant: str) -> None:
        caller: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not lane.is_ready:
            # What a lane did not use while it could not is not saved up.
            lane.reached = max(lane.reached, self._reached)
        lane.add(tenant, caller)
        self._hand_out()
        try:
            await caller
        except asyncio.CancelledError:
            if caller.done() and not caller.cancelled():
                self._give_back(lane, tenant)
            else:
                lane.drop(tenant, caller)
            raise

    def _give_back(self, lane: _Lane, tenant: str) -> None:
        lane.give_back(tenant)
        self._free += 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (ready := [lane for lane in self._lanes.values() if lane.is_ready]):
            lane = min(ready, key=lambda one: one.reached)
            if lane.serve():
                self._reached = lane.reached
                lane.reached += lane.stride
                self._free -= 1


@dataclass(slots=True)
class _Pause:
    """Since when a tenant starts nothing, and since when its lane is read to the end."""

    since: float
    at_end: float | None = None

    def is_over(self, now: float, *, has_more: bool) -> bool:
        """Say whether the pause has ended; what was read last is given time to start."""
        if self.at_end is None and not has_more:
            self.at_end = now
        is_read = self.at_end is not None and now - self.at_end >= _AT_END_S
        return is_read or now - self.since >= _LONGEST_PAUSE_S


class LaneShare:
    """The share of one lane: what its handler asks before it takes a job.

    Jobs that run or wait for a worker are in hand, about ``in_hand`` at most. A tenant may have as many as
    there are places left, so that however many tenants have more than enough, there is always a place for
    the next one. A tenant that found no place while the lane was far behind starts nothing here until it is
    read to its end: what stands in it behind that tenant's jobs comes first. The pause is bounded, since a
    lane that is never read to its end must not shut the tenant out.

    ``unread`` says how many records of the lane were not polled yet; the consumer of the lane sets it.
    """

    def __init__(
        self,
        shares: WorkerShares,
        lane: LaneName,
        *,
        in_hand: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shares = shares
        self._lane: LaneName = lane
        self._places = in_hand
        self._clock = clock
        self._in_hand: Counter[str] = Counter()
        self._paused: dict[str, _Pause] = {}
        self.unread: Callable[[], int] = lambda: 0

    def admits(self, tenant: str) -> bool:
        """Say whether another job of ``tenant`` may be begun; where not, it is to be put back."""
        pause = self._paused.get(tenant)
        if pause is not None:
            if not pause.is_over(self._clock(), has_more=self.unread() > 0):
                return False
            del self._paused[tenant]
        has = self._in_hand[tenant]
        if has and has >= self._places - self._in_hand.total():
            self.has_enough(tenant)
            return False
        return True

    def has_enough(self, tenant: str) -> None:
        """Note that ``tenant`` has as many jobs as it may."""
        if self.unread() > self._places:
            self._paused.setdefault(tenant, _Pause(since=self._clock()))

    @asynccontextmanager
    async def worker(self, tenant: str) -> AsyncGenerator[None]:
        """Hold one worker for a job of ``tenant``."""
        self._in_hand[tenant] += 1
        try:
            async with self._shares.worker(self._lane, tenant):
                yield
        finally:
            self._in_hand[tenant] -= 1
            if not self._in_hand[tenant]:
                del self._in_hand[tenant]
