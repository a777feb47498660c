"""The service and the broker die in the middle of the work, and nothing is lost or doubled."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.e2e.conftest import MORNING
from tests.support.benchmark_talks import benchmark_conversation
from tests.support.disturbances import Blow, Stage, ended_record, ends_told, play, stage
from tests.support.kafka import KafkaServer
from tests.support.memorybank import Day, days_of, some
from tests.support.postgres import PostgresServer
from tests.support.publishing import publishing, until
from tests.support.scripted_model import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_WAITING: Final = 8


async def test_a_service_that_is_killed_twice_remembers_the_same(
    apache_kafka: KafkaServer, postgres: PostgresServer, corpora: Path, topic_prefix: str, tmp_path: Path
) -> None:
    days = some(days_of(corpora), people=6, dates=5)
    undisturbed = await _memory_of(
        days, [], _Ground(apache_kafka, postgres, topic_prefix, tmp_path), within=30
    )

    ground = _Ground(apache_kafka, postgres, f"{topic_prefix}killed.", tmp_path / "killed")
    disturbed = await _memory_of(days, ["kill", "kill"], ground, within=30)

    assert disturbed == undisturbed


@pytest.mark.long
async def test_ten_kills_and_two_of_the_broker_change_no_fact(
    apache_kafka: KafkaServer,
    own_kafka: KafkaServer,
    postgres: PostgresServer,
    corpora: Path,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    days = days_of(corpora)
    undisturbed = await _memory_of(
        days, [], _Ground(apache_kafka, postgres, topic_prefix, tmp_path), within=60
    )
    blows: list[Blow] = ["kill" for _ in range(12)]
    blows[4] = blows[8] = "kill broker"

    disturbed = await _memory_of(
        days, blows, _Ground(own_kafka, postgres, f"{topic_prefix}killed.", tmp_path / "killed"), within=120
    )

    assert disturbed == undisturbed


async def test_sigterm_under_load_ends_with_0_and_loses_nothing(
    apache_kafka: KafkaServer, postgres: PostgresServer, corpora: Path, topic_prefix: str, tmp_path: Path
) -> None:
    days = some(days_of(corpora), people=10, dates=4)
    ground = _Ground(apache_kafka, postgres, topic_prefix, tmp_path)

    # The blow asserts the exit code; what follows asserts that each session ended once.
    assert await _memory_of(days, ["terminate", "terminate"], ground, within=30)


async def test_work_that_waits_for_a_model_is_done_by_the_next_start(
    apache_kafka: KafkaServer, postgres: PostgresServer, topic_prefix: str, tmp_path: Path
) -> None:
    async with (
        ScriptedModel(latency=3.0) as model,
        stage(
            apache_kafka,
            postgres,
            prefix=topic_prefix,
            folder=tmp_path,
            settings={
                "LLM_PROVIDER_ORDER": "openai",
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "OPENAI_MODEL": "scripted",
            },
        ) as on,
    ):
        bodies = [_told_to_a_model(number) for number in range(_WAITING)]
        async with publishing(on.service.kafka) as publisher:
            await publisher.send(*[ended_record(on.service.topics.ended, body) for body in bodies])

        async def all_wait() -> bool:
            return (await on.tables.statuses())["running"] == _WAITING

        await until(all_wait, within=20, what="every job waits for the model", every=0.05)
        # Time enough to commit offsets, if anybody did that before the effect.
        await asyncio.sleep(1.0)
        await on.service.kill_and_start()
        await on.tables.settled(_WAITING, within=30)

        assert await on.tables.statuses() == {"completed": _WAITING}
        assert len(await on.tables.facts(status="active")) == 5 * _WAITING
        assert set((await ends_told(on)).values()) == {1}


def _told_to_a_model(number: int) -> Mapping[str, Any]:
    messages = [{"role": role, "content": content} for role, content in benchmark_conversation(number)]
    return {
        "session_id": str(uuid4()),
        "user_id": str(uuid4()),
        "ended_at": MORNING.isoformat(),
        "messages": messages,
    }


class _Ground:
    """Where a playing takes place."""

    def __init__(self, kafka: KafkaServer, postgres: PostgresServer, prefix: str, folder: Path) -> None:
        self.kafka = kafka
        self.postgres = postgres
        self.prefix = prefix
        self.folder = folder


async def _memory_of(
    days: Sequence[Day], blows: Sequence[Blow], ground: _Ground, *, within: float
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Play ``days`` under ``blows`` and return what is remembered."""
    chance = random.Random(len(days))  # noqa: S311 - the same moments each time, as far as there are any
    async with stage(ground.kafka, ground.postgres, prefix=ground.prefix, folder=ground.folder) as on:
        records = [ended_record(on.service.topics.ended, day.ended()) for day in days]
        await play(records, on, blows, chance)
        await on.tables.settled(len(days), within=within)
        await _each_ended_once(on, days)
        assert await on.service.is_alone()
        return await on.tables.memory()


async def _each_ended_once(on: Stage, days: Sequence[Day]) -> None:
    expected = {
        ("memory.job.completed" if day.messages else "memory.job.gated", str(day.session_id)): 1
        for day in days
    }
    assert dict(await ends_told(on)) == expected
    assert {row["revision"] for row in await on.tables.jobs()} == {1}
