"""Kill the parts of a running service while conversations come in."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.publishing import Outgoing, Publisher, publishing, read_all, scope_key
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

Blow = Literal["kill", "terminate", "kill broker", "kill database"]
_STATIC = {"AFTERWORD_INSTANCE_ID": "one"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A service with a broker and a database of its own name, and what it is hit with."""

    service: RunningService
    tables: Tables
    kafka: KafkaServer
    postgres: PostgresServer

    async def hit(self, blow: Blow) -> None:
        """Hit it and see it up again."""
        match blow:
            case "kill":
                await self.service.kill_and_start()
            case "terminate":
                assert await self.service.terminate() == 0
                await self.service.start()
            case "kill broker":
                self.kafka.kill()
                await self.kafka.restart()
            case "kill database":
                self.postgres.kill()
                await self.postgres.restart()
                await self.tables.reconnect()


@asynccontextmanager
async def stage(
    kafka: KafkaServer,
    postgres: PostgresServer,
    *,
    prefix: str,
    folder: Path,
    is_static: bool = True,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[Stage]:
    """Give a service with an empty database; ``is_static``: a start is the same member of its groups."""
    url = postgres.create_database()
    static = _STATIC if is_static and kafka.kind != "tansu" else {}
    service = RunningService(
        folder,
        kafka=kafka,
        database_url=url,
        topic_prefix=prefix,
        settings={**static, **(settings or {})},
    )
    try:
        async with service, looking(url) as tables:
            yield Stage(service=service, tables=tables, kafka=kafka, postgres=postgres)
    finally:
        postgres.drop_database(url)


def ended_record(topic: str, body: Mapping[str, Any]) -> Outgoing:
    """Return the record that tells of the conversation ``body``."""
    return Outgoing(topic=topic, value=json.dumps(body).encode(), key=scope_key(body).encode())


async def play(
    records: Sequence[Outgoing], stage: Stage, blows: Sequence[Blow], chance: random.Random
) -> None:
    """Send ``records`` in parts, with one of ``blows`` into the work after each but the last."""
    async with publishing(stage.service.kafka) as publisher:
        parts = _parts(records, len(blows) + 1)
        for part, blow in zip(parts, blows, strict=False):
            await _send(publisher, part, stage, blow, chance)
        await publisher.send(*parts[-1])


async def _send(
    publisher: Publisher, part: Sequence[Outgoing], stage: Stage, blow: Blow, chance: random.Random
) -> None:
    async with asyncio.TaskGroup() as group:
        # While the broker is down the records wait in the producer.
        group.create_task(publisher.send(*part))
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        await stage.hit(blow)


def _parts(records: Sequence[Outgoing], count: int) -> list[Sequence[Outgoing]]:
    size = -(-len(records) // count)
    return [records[start * size : (start + 1) * size] for start in range(count)]


async def ends_told(stage: Stage) -> Counter[tuple[str, str]]:
    """Count the ends of jobs on the events' topic, each event once however often it was sent."""
    told = {
        record.header("ce_id"): (record.header("ce_type") or "", record.json()["job"]["session_id"])
        for record in await read_all(stage.service.kafka, stage.service.topics.events)
        if record.header("ce_type") in {"memory.job.completed", "memory.job.gated", "memory.job.dead"}
    }
    return Counter(told.values())
