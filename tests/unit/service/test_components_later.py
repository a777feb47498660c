"""Parts that can be made only once something outside is there, beside those that run from the start."""

import asyncio
from collections.abc import Sequence

import pytest

from domain.errors import InvalidInputError
from service.components import Component, ComponentEndedError, Components
from tests.unit.service.test_components import Part

pytestmark = pytest.mark.anyio


async def test_early_parts_serve_while_the_others_are_waited_for() -> None:
    stop, there, said = asyncio.Event(), asyncio.Event(), asyncio.Event()
    early, late = Part("early"), Part("late")

    async def later() -> Sequence[Component]:
        await there.wait()
        return [late]

    components = Components([early], budget=1, later=later)
    running = asyncio.create_task(components.run(stop, said.set))
    while not components.states()["early"].is_ready:
        await asyncio.sleep(0.01)

    assert components.states()["service"].detail == "starting"
    assert not said.is_set()
    there.set()
    async with asyncio.timeout(5):
        await said.wait()
    assert set(components.states()) == {"early", "late"}
    stop.set()
    await running
    assert early.has_ended
    assert late.has_ended


async def test_a_stop_does_not_wait_for_what_is_still_to_come() -> None:
    stop = asyncio.Event()
    early = Part("early")

    async def never() -> Sequence[Component]:
        await asyncio.Event().wait()
        return []

    running = asyncio.create_task(Components([early], budget=1, later=never).run(stop, lambda: None))
    await asyncio.sleep(0.05)
    stop.set()
    async with asyncio.timeout(5):
        await running

    assert early.has_ended


async def test_a_refused_start_ends_what_runs_and_is_told_as_it_is() -> None:
    early = Part("early")

    async def refused() -> Sequence[Component]:
        await asyncio.sleep(0.05)
        raise InvalidInputError("the embedder is another one")

    with pytest.raises(InvalidInputError, match="the embedder is another one"):
        await Components([early], budget=1, later=refused).run(asyncio.Event(), lambda: None)

    assert early.has_ended


async def test_an_early_part_that_ends_by_itself_ends_the_start() -> None:
    async def never() -> Sequence[Component]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(ComponentEndedError, match="early ended by itself"):
        await Components([Part("early", ends=True)], budget=1, later=never).run(asyncio.Event(), lambda: None)
