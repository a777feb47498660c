"""An injection that waits for a session sees what it said, and holds up nobody."""

import asyncio
import time
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from tests.e2e.conftest import Engine

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_WAIT_MS: Final = 5_000
_CITIES: Final = ("Lisbon", "Porto", "Leeds", "Turin", "Ghent", "Bergen", "Split", "Gdansk")


async def _sees_its_own(engine: Engine, count: int) -> int:
    """End ``count`` sessions of as many users, inject for each at once; return how many saw their fact."""

    async def one(number: int) -> bool:
        user, city = uuid4(), _CITIES[number % len(_CITIES)]
        told = engine.conversation(f"I live in {city}.", user_id=str(user))
        await engine.publisher.send_json(engine.topics.ended, told)
        reply = await engine.client.inject(
            user=user, wait_for_session=told["session_id"], wait_ms=_WAIT_MS, timeout=10
        )
        return city in reply.text and not reply.pending_sessions

    return sum(await asyncio.gather(*(one(number) for number in range(count))))


async def test_thirty_sessions_are_seen_by_the_injections_that_wait_for_them(engine: Engine) -> None:
    assert await _sees_its_own(engine, 30) == 30


@pytest.mark.long
async def test_two_hundred_sessions_are_seen_by_the_injections_that_wait_for_them(engine: Engine) -> None:
    assert await _sees_its_own(engine, 200) == 200


async def test_a_session_that_never_comes_is_waited_for_and_then_the_answer_comes_as_it_is(
    engine: Engine,
) -> None:
    await engine.tell(engine.conversation("I live in Porto."))
    started = time.monotonic()

    reply = await engine.injected(wait_for_session=str(uuid4()), wait_ms=300)

    assert time.monotonic() - started >= 0.3
    assert "Porto" in reply.text


async def test_those_who_wait_hold_up_nobody(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto."))
    waiting = [
        asyncio.create_task(engine.injected(wait_for_session=str(uuid4()), wait_ms=4_000, timeout=10))
        for _ in range(64)
    ]
    await asyncio.sleep(0.3)

    replies: list[Any] = [await engine.injected(timeout=2) for _ in range(5)]

    assert all("Porto" in reply.text for reply in replies)
    assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)


async def test_a_gated_session_ends_the_wait(engine: Engine) -> None:
    told = engine.conversation(messages=[])
    await engine.publisher.send_json(engine.topics.ended, told)

    reply = await engine.injected(wait_for_session=told["session_id"], wait_ms=_WAIT_MS, timeout=10)

    assert reply.text == ""
    assert (await engine.client.job(session_id=UUID(told["session_id"]))).status == "gated"
