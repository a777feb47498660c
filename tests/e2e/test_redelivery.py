"""Everything is delivered a second time, and nothing happens a second time."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid5

import pytest

from tests.e2e.conftest import MORNING
from tests.support.disturbances import Stage, ended_record, stage
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.publishing import Outgoing, lag, publishing, read_all, rewind, until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_SPACE = UUID("3f0a6d1e-0f4b-4b51-9d0f-6b1b2d9a7c11")


async def test_what_is_delivered_again_changes_nothing_and_is_buried_once(
    apache_kafka: KafkaServer, postgres: PostgresServer, topic_prefix: str, tmp_path: Path
) -> None:
    async with stage(apache_kafka, postgres, prefix=topic_prefix, folder=tmp_path, is_static=False) as on:
        topics = on.service.topics
        consumed = [topics.ended, topics.messages, topics.replay, topics.jobs("bulk"), topics.jobs("replay")]
        records = _records(topics.ended)
        async with publishing(on.service.kafka) as publisher:
            await publisher.send(*records)
        await on.tables.settled(6, within=30)
        await _all_committed(on, consumed)
        before = (await on.tables.memory(), await on.tables.jobs(), await _letters(on))
        assert len(before[2]) == 2

        assert await on.service.terminate() == 0
        await rewind(on.service.kafka, consumed)
        assert await lag(on.service.kafka, consumed) >= len(records)
        await on.service.start()
        await _all_committed(on, consumed)
        await on.tables.settled(6, within=30)

        assert (await on.tables.memory(), await on.tables.jobs(), await _letters(on)) == before


def _records(topic: str) -> Sequence[Outgoing]:
    said = ["My name is Nadia.", "I live in Porto.", "I live in Leeds.", "I work as a nurse."]
    told = [
        ended_record(topic, _ended(number, text))
        for number, text in enumerate([*said, "Hm.", "I have a cat."])
    ]
    broken = [Outgoing(topic=topic, value=value, key=b"default:broken") for value in (b"\xff", b"{}")]
    return [*told[:3], *broken, *told[3:]]


def _ended(number: int, text: str) -> dict[str, object]:
    moment = MORNING + timedelta(days=number)
    return {
        "session_id": str(uuid5(_SPACE, f"session {number}")),
        "user_id": str(uuid5(_SPACE, f"user {number % 2}")),
        "ended_at": moment.isoformat(),
        "messages": [{"role": "user", "content": text, "sent_at": moment.isoformat()}],
    }


async def _all_committed(on: Stage, topics: Sequence[str]) -> None:
    async def is_committed() -> bool:
        return await lag(on.service.kafka, topics) == 0

    await until(is_committed, within=30, what="every offset committed", every=0.3)


async def _letters(on: Stage) -> list[str]:
    letters = await read_all(on.service.kafka, on.service.topics.dead_letters)
    return sorted(json.dumps([repr(one.value), one.header("dlq-offset")]) for one in letters)
