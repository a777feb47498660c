"""The model is away, slow or busy, or the embedder is: nothing is lost, and nobody has to lend a hand."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.support.kafka import KafkaServer
from tests.support.model_script import DROPS_THE_CONNECTION, HANGS, Step
from tests.support.outages import Outage, Scene, nothing, scene
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

LONG_S: Final = 60.0
_QUICK_MODEL: Final = {"MEMORY_LLM_TIMEOUT_SEC": "2", "MEMORY_MODEL_FALLBACK": "wait"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def waiting(
    kafka: KafkaServer, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Scene]:
    """A service whose jobs wait for the model, which has two seconds for an answer."""
    folder = tmp_path_factory.mktemp("model-outages")
    async with scene(
        folder, kafka=kafka, postgres=postgres, prefix="model.", settings=_QUICK_MODEL
    ) as service:
        yield service


def plays(*steps: Step) -> Callable[[Scene], Outage]:
    """Give the next calls of the model ``steps``."""

    def outage(scene: Scene) -> Outage:
        async def go() -> None:
            await scene.model.plays(*steps)

        return Outage(go=go, back=nothing)

    return outage


def killed(scene: Scene) -> Outage:
    return Outage(go=scene.model.kill, back=scene.model.start)


def frozen(scene: Scene) -> Outage:
    async def go() -> None:
        scene.model.freeze()

    async def back() -> None:
        scene.model.thaw()

    return Outage(go=go, back=back)


def busy_for_a_minute(scene: Scene) -> Outage:
    async def go() -> None:
        await scene.model.plays(*[Step.fails(429)] * 1_000)

    async def back() -> None:
        await scene.model.plays()

    return Outage(go=go, back=back)


@pytest.mark.parametrize(
    "outage",
    [
        plays(*[Step.fails(429)] * 3),
        plays(*[Step.fails(429, retry_after="1")] * 3),
        plays(*[Step.fails(503)] * 3),
        plays(*[DROPS_THE_CONNECTION] * 3),
        plays(*[HANGS] * 2),
    ],
    ids=["429", "429 with Retry-After", "503", "dropped", "hangs"],
)
async def test_a_model_that_fails_for_a_moment_is_asked_again(
    waiting: Scene, outage: Callable[[Scene], Outage]
) -> None:
    await waiting.suffers(outage(waiting), seconds=0)


@pytest.mark.long
@pytest.mark.parametrize("outage", [killed, frozen, busy_for_a_minute], ids=lambda outage: outage.__name__)
async def test_jobs_wait_for_a_model_that_is_away_for_a_minute(
    waiting: Scene, outage: Callable[[Scene], Outage]
) -> None:
    await waiting.suffers(outage(waiting), seconds=LONG_S)


@pytest.mark.long
async def test_rules_stand_in_for_a_minute_and_the_model_reads_it_all_again(
    kafka: KafkaServer, postgres: PostgresServer, topic_prefix: str, tmp_path: Path
) -> None:
    async with scene(
        tmp_path,
        kafka=kafka,
        postgres=postgres,
        prefix=topic_prefix,
        settings={"MEMORY_LLM_TIMEOUT_SEC": "2"},
    ) as service:
        outage = replace(killed(service), is_stood_in_for=True)
        await service.suffers(outage, seconds=LONG_S)


@pytest.mark.long
async def test_jobs_wait_for_an_embedder_that_is_away_for_a_minute(
    kafka: KafkaServer, postgres: PostgresServer, topic_prefix: str, tmp_path: Path
) -> None:
    async with scene(
        tmp_path,
        kafka=kafka,
        postgres=postgres,
        prefix=topic_prefix,
        has_embedder=True,
        settings=_QUICK_MODEL,
    ) as service:
        await service.suffers(killed_embedder(service), seconds=LONG_S)


def killed_embedder(scene: Scene) -> Outage:
    assert scene.embedder is not None
    return Outage(go=scene.embedder.kill, back=scene.embedder.start)
