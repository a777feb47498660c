"""Replicas come, go and sleep while conversations come in: each is done once, in order, by one at a time."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.faults.corpus import corpus_of
from tests.faults.playing import Disturb, Playing, undisturbed
from tests.faults.scene import Cast, Ground, Scene
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_ROLES: Final = "intake,extraction,relay,upkeep"
_THREE: Final = {f"replica-{number}": _ROLES for number in (1, 2, 3)}
_FOUR: Final = {f"replica-{number}": _ROLES for number in (1, 2, 3, 4)}
# Longer than the session time-out of a scene, so that its work is given to others meanwhile.
_ASLEEP_S: Final = 5.0


async def roll(on: Scene, due: Sequence[asyncio.Event]) -> None:
    """Restart one replica after the other, twice around, as a deployment does."""
    for replica, event in zip([*on.replicas.values()] * 2, due, strict=True):
        event.set()
        await replica.restart()


async def scale(on: Scene, due: Sequence[asyncio.Event]) -> None:
    """Add replicas until there are all, then take away those that were added."""
    _, *added = on.replicas.values()
    moves = [*(one.start for one in added), *(one.end for one in added)]
    for move, event in zip(moves, due, strict=True):
        event.set()
        await move()


async def sleep(on: Scene, due: Sequence[asyncio.Event]) -> None:
    """SIGSTOP each replica beyond its session time-out, one after the other, while it has work in hand."""
    for replica, event in zip(on.replicas.values(), due, strict=True):
        event.set()
        await asyncio.sleep(1.0)
        await replica.freeze(_ASLEEP_S)


async def crash(on: Scene, due: Sequence[asyncio.Event]) -> None:
    """SIGKILL each replica and start it again under its name at once."""
    for replica, event in zip(on.replicas.values(), due, strict=True):
        event.set()
        await asyncio.sleep(0.5)
        await replica.crash()


async def _broken(
    ground: Ground, cast: Cast, disturb: Disturb, folder: Path, *, parts: int, sessions: int
) -> list[str]:
    corpus = corpus_of(7, sessions=sessions)
    memory = await undisturbed(ground, corpus)
    playing = Playing(ground, corpus, cast, folder=folder, parts=parts)
    await playing.play(memory, disturb)
    return playing.broken


@pytest.fixture
async def ground(apache_kafka: KafkaServer, postgres: PostgresServer) -> Ground:
    return await Ground.of(apache_kafka, postgres)


async def test_scaling_up_and_down_under_load_breaks_no_promise(ground: Ground, tmp_path: Path) -> None:
    cast = Cast(roles=_THREE, is_static=False, late=frozenset(list(_THREE)[1:]))

    assert await _broken(ground, cast, scale, tmp_path, parts=4, sessions=60) == []


@pytest.mark.long
async def test_scaling_from_one_to_four_and_back_breaks_no_promise(ground: Ground, tmp_path: Path) -> None:
    cast = Cast(roles=_FOUR, is_static=False, late=frozenset(list(_FOUR)[1:]))

    assert await _broken(ground, cast, scale, tmp_path, parts=6, sessions=300) == []


@pytest.mark.long
async def test_a_rolling_restart_of_three_static_replicas_breaks_no_promise(
    ground: Ground, tmp_path: Path
) -> None:
    assert await _broken(ground, Cast(roles=_THREE), roll, tmp_path, parts=6, sessions=300) == []


@pytest.mark.long
@pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
async def test_a_replica_that_sleeps_beyond_its_session_and_wakes_breaks_no_promise(
    ground: Ground, tmp_path: Path, is_static: bool
) -> None:
    cast = Cast(roles=_THREE, is_static=is_static)

    assert await _broken(ground, cast, sleep, tmp_path, parts=3, sessions=300) == []


@pytest.mark.long
async def test_a_static_replica_that_is_killed_and_comes_back_at_once_breaks_no_promise(
    ground: Ground, tmp_path: Path
) -> None:
    assert await _broken(ground, Cast(roles=_THREE), crash, tmp_path, parts=3, sessions=300) == []
