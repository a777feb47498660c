"""Real conversations of fifteen people over ten days, by rules alone, on a real broker."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from producers.client import MemoryClient
from tests.support.kafka import KafkaServer
from tests.support.memorybank import Day, days_of
from tests.support.postgres import PostgresServer
from tests.support.publishing import lag, publishing, read_all, until
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_real_conversations_give_the_same_memory_however_they_come(
    apache_kafka: KafkaServer, postgres: PostgresServer, corpora: Path, topic_prefix: str, tmp_path: Path
) -> None:
    days = days_of(corpora)
    assert len(days) == 150

    async with _playing(apache_kafka, postgres, f"{topic_prefix}forward.", tmp_path / "forward") as (
        service,
        tables,
    ):
        await _play(service, days)
        await tables.settled(len(days), within=60)
        await _every_session_ended_once(service, tables, days)
        await _everybody_is_remembered(service, tables, days)
        once = await tables.memory()

        await _play(service, days)
        await _all_was_read(service)
        await tables.settled(len(days), within=60)
        assert await tables.memory() == once
        assert {row["revision"] for row in await tables.jobs()} == {1}

    backwards = sorted(days, key=lambda day: day.date, reverse=True)
    async with _playing(apache_kafka, postgres, f"{topic_prefix}back.", tmp_path / "back") as (
        service,
        tables,
    ):
        await _play(service, backwards)
        await tables.settled(len(days), within=60)
        assert await tables.memory() == once


@asynccontextmanager
async def _playing(
    kafka: KafkaServer, postgres: PostgresServer, prefix: str, folder: Path
) -> AsyncGenerator[tuple[RunningService, Tables]]:
    """Give a service with an empty database of its own."""
    url = postgres.create_database()
    service = RunningService(folder, kafka=kafka, database_url=url, topic_prefix=prefix)
    try:
        async with service, looking(url) as tables:
            yield service, tables
    finally:
        postgres.drop_database(url)


async def _play(service: RunningService, days: Sequence[Day]) -> None:
    async with publishing(service.kafka) as publisher:
        for day in days:
            await publisher.send_json(service.topics.ended, day.ended())


async def _all_was_read(service: RunningService) -> None:
    async def is_read() -> bool:
        return await lag(service.kafka, [service.topics.ended]) == 0

    await until(is_read, within=30, what="every record committed", every=0.3)


async def _every_session_ended_once(service: RunningService, tables: Tables, days: Sequence[Day]) -> None:
    jobs = {row["session_id"]: row for row in await tables.jobs()}
    assert set(jobs) == {day.session_id for day in days}
    for day in days:
        job = jobs[day.session_id]
        expected = ("completed", None) if day.messages else ("gated", "empty")
        assert (job["status"], job["gate"], job["error"]) == (*expected, None)

    events = await read_all(service.kafka, service.topics.events)
    told = Counter(
        (record.header("ce_type"), record.json()["job"]["session_id"])
        for record in events
        if (record.header("ce_type") or "").startswith("memory.job.")
    )
    ends = {key: n for key, n in told.items() if key[0] in {"memory.job.completed", "memory.job.gated"}}
    assert Counter(kind for kind, _ in ends) == {"memory.job.completed": 149, "memory.job.gated": 1}
    assert set(ends.values()) == {1}


async def _everybody_is_remembered(service: RunningService, tables: Tables, days: Sequence[Day]) -> None:
    known = {row["user_id"] for row in await tables.facts(status="active")}
    assert len(known) >= 14

    client = MemoryClient(
        service.kafka,
        topic_prefix=service.topics.prefix,
        reply_topic=f"{service.topics.prefix}memorybank.replies",
    )
    async with client:
        for user_id in sorted({day.user_id for day in days}):
            reply = await client.inject(user=user_id, timeout=5.0)
            assert reply.applied == (user_id in known)
            assert reply.text.startswith("## User Memory\n") == reply.applied
