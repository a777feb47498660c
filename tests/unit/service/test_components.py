import asyncio

import pytest

from consumers.failure_limit import TooManyFailuresError
from gateway.parts import ComponentState
from service.components import ComponentEndedError, Components

pytestmark = pytest.mark.anyio


class Part:
    """Serves after ``ready_after`` seconds; ends by itself where ``fails`` or ``ends`` says so."""

    def __init__(
        self, name: str, *, ready_after: float = 0.0, ends: bool = False, fails: Exception | None = None
    ) -> None:
        self.name = name
        self._ready_after = ready_after
        self._ends = ends
        self._fails = fails
        self._is_ready = False
        self._stopping = asyncio.Event()
        self.has_ended = False

    def state(self) -> ComponentState:
        return ComponentState(is_ready=self._is_ready)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        await asyncio.sleep(self._ready_after)
        self._is_ready = True
        if self._fails:
            raise self._fails
        if not self._ends:
            await self._stopping.wait()
        self.has_ended = True


class Stubborn(Part):
    """Does not end when it is asked to."""

    async def run(self) -> None:
        self._is_ready = True
        await asyncio.sleep(60)


async def test_ready_is_said_once_and_only_when_every_part_serves() -> None:
    stop, said = asyncio.Event(), list[bool]()
    parts = [Part("a"), Part("b", ready_after=0.2)]
    components = Components(parts, budget=1)

    def ready() -> None:
        said.append(all(part.state().is_ready for part in parts))
        stop.set()

    await components.run(stop, ready)

    assert said == [True]
    assert all(part.has_ended for part in parts)


@pytest.mark.parametrize("how", ["ends", "fails"])
async def test_a_part_that_ends_by_itself_ends_the_whole_with_an_error(how: str) -> None:
    other = Part("other")
    broken = Part("broken", ends=how == "ends", fails=RuntimeError("broken") if how == "fails" else None)

    with pytest.raises(ComponentEndedError):
        await Components([other, broken], budget=1).run(asyncio.Event(), lambda: None)

    assert other.has_ended


async def test_a_part_that_does_not_stop_is_cut_off_at_the_end_of_the_budget() -> None:
    stop = asyncio.Event()
    components = Components([Stubborn("stubborn")], budget=0.1)

    async with asyncio.timeout(5):
        await components.run(stop, stop.set)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TooManyFailuresError("most messages fail"), "intake failed: most messages fail"),
        (RuntimeError("somebody's words"), "intake failed: RuntimeError"),
    ],
)
async def test_the_end_of_the_whole_names_the_part_and_the_reason_in_nobodys_words(
    error: Exception, why: str
) -> None:
    parts = [Part("other"), Part("intake", fails=error)]

    with pytest.raises(ComponentEndedError) as raised:
        await Components(parts, budget=1).run(asyncio.Event(), lambda: None)

    assert str(raised.value) == why


async def test_a_part_that_fails_while_it_stops_is_told_too() -> None:
    class Failing(Part):
        async def run(self) -> None:
            await super().run()
            raise TooManyFailuresError("at the end")

    stop = asyncio.Event()

    with pytest.raises(ComponentEndedError, match="late failed: at the end"):
        await Components([Failing("late")], budget=1).run(stop, stop.set)
