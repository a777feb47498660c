"""Backlogs: many conversations told at once, of tenants and lanes, whose model calls can be told apart."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from psycopg import AsyncConnection

from schemas.topics import LaneName, Topics
from tests.support.benchmark_talks import benchmark_facts
from tests.support.kafka import KafkaServer
from tests.support.publishing import Outgoing, Publisher, lag, publishing, until
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

_MORNING: Final = "2026-03-02T09:00:00+00:00"
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a test plays: its database is migrated, its topics are its own."""

    kafka: KafkaServer
    database_url: str
    prefix: str
    folder: Path


class Backlog:
    """A broker, a database, a model, and services on them; conversations are known by their numbers."""

    def __init__(
        self, ground: Ground, *, model: ScriptedModel, publisher: Publisher, tables: Tables, **settings: str
    ) -> None:
        self.model = model
        self.tables = tables
        self.topics = Topics(ground.prefix)
        self._ground = ground
        self._publisher = publisher
        self._settings = settings
        self._services = 0

    def service(self, *roles: str) -> RunningService:
        """Return a service that is not started, with ``roles`` or with all of them."""
        self._services += 1
        return RunningService(
            self._ground.folder / f"service-{self._services}",
            kafka=self._ground.kafka,
            database_url=self._ground.database_url,
            topic_prefix=self._ground.prefix,
            arguments=("--roles", ",".join(roles)) if roles else (),
            settings={
                "LLM_PROVIDER_ORDER": "openai",
                "OPENAI_BASE_URL": f"{self.model.url}/v1",
                "OPENAI_MODEL": "scripted",
                "AFTERWORD_DRAIN_SEC": "1",
                **self._settings,
            },
        )

    async def tell(self, numbers: Iterable[int], *, tenant: str = "default", again: bool = False) -> None:
        """Publish the conversations ``numbers`` of ``tenant``; with ``again`` they are replayed ones."""
        topic = self.topics.replay if again else self.topics.ended
        records = [_ended(number, tenant, topic) for number in numbers]
        for start in range(0, len(records), _BATCH):
            await self._publisher.send(*records[start : start + _BATCH])

    async def queued(self, jobs: int, *, within: float) -> None:
        """Return when there are ``jobs`` jobs and all that is due is with the broker."""

        async def are_queued() -> bool:
            rows = await self.tables.rows(
                "SELECT (SELECT count(*) FROM lis.extraction_jobs) AS jobs,"
                " (SELECT count(*) FROM lis.outbox WHERE available_at <= now()) AS due"
            )
            return bool(rows[0]["jobs"] >= jobs and rows[0]["due"] == 0)

        await until(are_queued, within=within, what=f"{jobs} jobs in their lanes", every=0.2)

    async def unread(self, lane: LaneName) -> int:
        """Return how many records of ``lane`` are not done."""
        return await lag(self._ground.kafka.bootstrap, [self.topics.jobs(lane)])

    async def is_working(self) -> bool:
        """Say whether the model was called."""
        return (await self.model.seen()).calls > 0

    async def calls(self, number: int, *, within: float) -> None:
        """Return when the model was called ``number`` times."""

        async def are_there() -> bool:
            return (await self.model.seen()).calls >= number

        await until(are_there, within=within, what=f"{number} model calls", every=0.1)

    async def calls_before(self, number: int, *, since: int = 0, within: float) -> int:
        """Return how many model calls began, after the first ``since``, before that of ``number``."""

        async def has_begun() -> bool:
            return number in (await self.model.seen()).files

        await until(has_begun, within=within, what=f"a model call for conversation {number}", every=0.1)
        return (await self.model.seen()).files.index(number) - since


@asynccontextmanager
async def backlog(
    ground: Ground, *, latency: float, plans: Mapping[str, str] | None = None, **settings: str
) -> AsyncGenerator[Backlog]:
    """Give a stage on ``ground`` whose model takes ``latency``; ``plans`` are of tenants."""
    await _plan(ground.database_url, plans or {})
    async with (
        ScriptedModel(latency=latency) as model,
        publishing(ground.kafka.bootstrap) as publisher,
        looking(ground.database_url) as tables,
    ):
        yield Backlog(ground, model=model, publisher=publisher, tables=tables, **settings)


async def _plan(database_url: str, plans: Mapping[str, str]) -> None:
    async with await AsyncConnection.connect(database_url, autocommit=True) as conn:
        for tenant, plan in plans.items():
            await conn.execute("INSERT INTO lis.tenants (tenant_id, plan) VALUES (%s, %s)", (tenant, plan))


def places_of(files: Sequence[int], wanted: range) -> list[int]:
    """Return the places in ``files`` of conversations of ``wanted``."""
    return [place for place, number in enumerate(files) if number in wanted]


def _ended(number: int, tenant: str, topic: str) -> Outgoing:
    user = str(uuid5(NAMESPACE_URL, f"user {number}"))
    said = benchmark_facts(number)[0]["said"]
    message = {"role": "user", "content": f"It is about file QX-{number}. {said}.", "sent_at": _MORNING}
    body = {
        "tenant_id": tenant,
        "session_id": str(uuid5(NAMESPACE_URL, f"session {number}")),
        "user_id": user,
        "ended_at": _MORNING,
        "messages": [message],
    }
    return Outgoing(topic=topic, value=json.dumps(body).encode(), key=f"{tenant}:{user}".encode())
