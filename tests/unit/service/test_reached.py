"""Whether database and broker are there is looked at, not believed."""

import asyncio

import pytest

from domain.errors import BrokerUnavailableError
from service.parts import Reached

pytestmark = pytest.mark.anyio


class Broker:
    """Answers while it is up; counts who asks."""

    def __init__(self) -> None:
        self.is_up = False
        self.asked = 0

    async def look(self) -> None:
        self.asked += 1
        if not self.is_up:
            raise BrokerUnavailableError("away")


async def looked(broker: Broker) -> None:
    """Return when a look that began after this call has ended."""
    asked = broker.asked
    async with asyncio.timeout(5):
        while broker.asked < asked + 2:
            await asyncio.sleep(0.005)


async def test_a_broker_is_ready_only_while_it_answers() -> None:
    broker = Broker()
    part = Reached("broker", broker.look, every=0.01)
    states = [part.state().is_ready]

    running = asyncio.create_task(part.run())
    for is_up in (False, True, False, True):
        broker.is_up = is_up
        await looked(broker)
        states.append(part.state().is_ready)
    part.stop()
    await asyncio.wait_for(running, 5)

    assert states == [False, False, True, False, True]


async def test_a_look_that_never_ends_does_not_hold_up_a_stop() -> None:
    part = Reached("broker", lambda: asyncio.sleep(60))

    running = asyncio.create_task(part.run())
    await asyncio.sleep(0.01)
    part.stop()

    await asyncio.wait_for(running, 1)
