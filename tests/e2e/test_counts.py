"""What one conversation costs, counted: the budget that no change may exceed unseen."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from producers.client import MemoryClient
from schemas.topics import LANES, Topics
from tests.support.benchmark_talks import benchmark_conversation
from tests.support.kafka import KafkaServer
from tests.support.publishing import Read, read_all
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService
from tests.support.statement_counter import Counts, StatementCounter, counted

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CONVERSATIONS: Final = 12
FACTS: Final = 5
# Intake, claim and commit; each loan of a connection asks whether it lives.
BUDGET: Final = {"transactions": 3, "round trips": 9.5, "statements": 24}
# What looks at the backlog every few seconds is counted with them.
SLACK: Final = 0.5


@pytest.fixture
async def model() -> AsyncGenerator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


async def test_a_conversation_costs_no_more_than_its_budget(
    kafka: KafkaServer, migrated_url: str, topic_prefix: str, tmp_path: Path, model: ScriptedModel
) -> None:
    async with counted(migrated_url) as (url, counter):
        service = RunningService(
            tmp_path,
            kafka=kafka,
            database_url=url,
            topic_prefix=topic_prefix,
            settings={
                # What the relay does is shared by all conversations, and goes through the other door.
                "AFTERWORD_DATABASE_DIRECT_URL": migrated_url,
                # One connection is enough for one conversation, and none is opened while it is counted.
                "DB_POOL_MAX": "1",
                "LLM_PROVIDER_ORDER": "openai",
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "OPENAI_MODEL": "scripted",
            },
        )
        async with service:
            await _play(service, range(2))
            calls = (await model.seen()).calls
            counts = await _counted(service, counter, range(2, 2 + CONVERSATIONS))
            records = await _records(service.kafka, service.topics)

        assert (await model.seen()).calls - calls == CONVERSATIONS
    assert records == _expected_records(2 + CONVERSATIONS)
    each = {
        "transactions": counts.transactions / CONVERSATIONS,
        "round trips": counts.round_trips / CONVERSATIONS,
        "statements": counts.statements / CONVERSATIONS,
    }
    over = {name: figure for name, figure in each.items() if figure > BUDGET[name] + SLACK}
    assert not over, (each, counts.by_text.most_common())


async def _counted(service: RunningService, counter: StatementCounter, numbers: Sequence[int]) -> Counts:
    """Play one conversation after the other: nothing is shared then, which is the dearest way."""
    counter.take()
    await _play(service, numbers)
    # What is left to write of the last one, such as its offset, needs no statement.
    await asyncio.sleep(0.3)
    return counter.take()


async def _play(service: RunningService, numbers: Sequence[int]) -> None:
    client = MemoryClient(
        service.kafka,
        topic_prefix=service.topics.prefix,
        reply_topic=f"{service.topics.prefix}counts.replies",
    )
    async with client:
        for number in numbers:
            session, user = uuid4(), uuid4()
            await client.conversation_ended(
                user=user, session_id=session, ended_at=datetime.now(UTC), messages=_messages(number)
            )
            await _ended(service, session)


async def _ended(service: RunningService, session: UUID) -> None:
    """Return when the session's end is told, without a query that would be counted."""
    async with asyncio.timeout(20):
        while str(session) not in {_completed(record) for record in await _events(service)}:
            await asyncio.sleep(0.05)


async def _events(service: RunningService) -> list[Read]:
    return await read_all(service.kafka, service.topics.events)


def _completed(record: Read) -> str | None:
    if record.header("ce_type") != "memory.job.completed":
        return None
    session: str = record.json()["job"]["session_id"]
    return session


def _messages(number: int) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in benchmark_conversation(number)]


async def _records(bootstrap: str, topics: Topics) -> dict[str, int]:
    jobs = [await read_all(bootstrap, topics.jobs(lane)) for lane in LANES]
    return {
        "events": len(await read_all(bootstrap, topics.events)),
        "facts": len(await read_all(bootstrap, topics.facts)),
        "jobs": sum(len(records) for records in jobs),
        "dead letters": len(await read_all(bootstrap, topics.dead_letters)),
    }


def _expected_records(conversations: int) -> dict[str, int]:
    # The job's queued, started and completed, and each fact's event.
    return {
        "events": conversations * (3 + FACTS),
        "facts": conversations * FACTS,
        "jobs": conversations,
        "dead letters": 0,
    }
