"""A model that takes its time, or gives none, slows nothing else."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import pytest

from producers.client import MemoryClient
from tests.e2e.conftest import MORNING
from tests.support.benchmark_talks import benchmark_answer, benchmark_conversation
from tests.support.kafka import KafkaServer
from tests.support.model_script import HANGS, Step
from tests.support.postgres import PostgresServer
from tests.support.publishing import until
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_ASKED_AT_ONCE: Final = 6


@pytest.fixture
async def model() -> AsyncGenerator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
async def service(
    kafka: KafkaServer, postgres: PostgresServer, topic_prefix: str, tmp_path: Path, model: ScriptedModel
) -> AsyncGenerator[RunningService]:
    """A service with one connection a pool: whoever held it during a call would hold up everybody."""
    url = postgres.create_database()
    service = RunningService(
        tmp_path,
        kafka=kafka,
        database_url=url,
        topic_prefix=topic_prefix,
        settings={
            "DB_POOL_MAX": "1",
            "LLM_PROVIDER_ORDER": "openai",
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_MODEL": "scripted",
            "AFTERWORD_DRAIN_SEC": "1",
        },
    )
    try:
        async with service:
            yield service
    finally:
        postgres.drop_database(url)


async def test_a_model_that_hangs_holds_no_connection_and_no_read(
    service: RunningService, model: ScriptedModel
) -> None:
    async with _client(service) as client, looking(service.database_url) as tables:
        remembered = uuid4()
        await client.wait_until_remembered(await _tell(client, remembered, 1), timeout=20)
        await model.plays(*[HANGS] * _ASKED_AT_ONCE)

        for number in range(_ASKED_AT_ONCE):
            await _tell(client, uuid4(), number)
        await _until_running(tables, _ASKED_AT_ONCE)

        # All of them wait for the model now, and the one connection is free for a read and for what comes in.
        assert (await client.inject(user=remembered, timeout=2.0)).applied
        await client.wait_until_remembered(await _tell(client, uuid4(), 2), timeout=10)


async def test_an_answer_that_cannot_be_read_is_asked_for_again_and_never_taken_for_nothing(
    service: RunningService, model: ScriptedModel
) -> None:
    async with _client(service) as client:
        user = uuid4()
        await model.plays(Step.says("I could not find any."), Step.says(benchmark_answer(3)))

        job = await client.wait_until_remembered(await _tell(client, user, 3), timeout=20)

        assert job.result is not None
        assert (job.result.facts_created, job.result.model_calls) == (5, 2)


def _client(service: RunningService) -> MemoryClient:
    prefix = service.topics.prefix
    return MemoryClient(service.kafka, topic_prefix=prefix, reply_topic=f"{prefix}model.replies")


async def _tell(client: MemoryClient, user: UUID, number: int) -> UUID:
    session = uuid4()
    messages = [{"role": role, "content": content} for role, content in benchmark_conversation(number)]
    await client.conversation_ended(user=user, session_id=session, ended_at=MORNING, messages=messages)
    return session


async def _until_running(tables: Tables, jobs: int) -> None:
    async def are_running() -> bool:
        return (await tables.statuses())["running"] == jobs

    await until(are_running, within=10, what=f"{jobs} jobs that wait for the model", every=0.1)
