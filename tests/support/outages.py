"""What a service needs, taken away while conversations come in, and given back."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import psycopg
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql

from tests.support.benchmark_talks import benchmark_conversation, benchmark_facts
from tests.support.disturbances import ended_record
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.publishing import Outgoing, Publisher, publishing, read_all, until
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

MODEL_LATENCY_S: Final = 0.2
_IN_A_PART: Final = 6
_SESSIONS_WITHIN_S: Final = 90.0
_REDONE_WITHIN_S: Final = 180.0
# Whoever tells outlives any outage here.
_PATIENCE_MS: Final = 180_000

Change = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """Change nothing: what was taken away comes back by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """How something goes away and comes back, and what the service says of it meanwhile.

    ``awaited`` is the part that ``/ready`` and the metric name; empty where the service goes on serving.
    ``times`` is how often it goes and comes back; ``is_stood_in_for``: what was done is done again.
    """

    go: Change
    back: Change
    awaited: str = ""
    detail: str = ""
    times: int = 1
    is_stood_in_for: bool = False


@dataclass(slots=True, kw_only=True)
class Scene:
    """A service, what it needs, and the conversations it was told of."""

    service: RunningService
    tables: Tables
    kafka: KafkaServer
    postgres: PostgresServer
    model: ScriptedModel
    embedder: ScriptedModel | None
    publisher: Publisher
    told: dict[UUID, int] = field(default_factory=dict)

    def conversations(self, count: int = _IN_A_PART) -> list[Outgoing]:
        """Return ``count`` conversations of new users, each of which states five facts."""
        records = []
        for _ in range(count):
            session, number = uuid4(), len(self.told)
            self.told[session] = number
            body = _body(session, number)
            records.append(ended_record(self.service.topics.ended, body))
        return records

    async def ready(self) -> tuple[int, dict[str, Any]]:
        """Return the status of ``/ready`` and the state of each part."""
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            response = await client.get(f"{self.service.http}/ready")
        return response.status_code, response.json()["components"]

    async def awaited(self, what: str) -> float:
        """Return the gauge of what is waited for."""
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            text = (await client.get(f"{self.service.http}/metrics")).text
        return next(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "memory_awaited" and sample.labels["what"] == what
        )

    async def suffers(self, outage: Outage, *, seconds: float) -> None:
        """Take it away amid the work for ``seconds``, give it back, and see what has become of everything."""
        pid, mark = self.service.pid, len(self.service.logs())
        await self.publisher.send(*self.conversations())
        await self._until_busy()
        await outage.go()
        during = asyncio.create_task(self.publisher.send(*self.conversations()))
        await self._says_what_it_waits_for(outage)
        await asyncio.sleep(seconds)
        await outage.back()
        await during
        await self.publisher.send(*self.conversations())
        if outage.is_stood_in_for:
            await self._the_model_has_read_it_all()
        await self._everything_is_remembered_once()
        await self._is_ready_again()
        assert self.service.pid == pid
        assert self.service.returncode is None
        warnings = Counter(told_of_waiting(self.service.logs()[mark:]))
        # Each part that meets it tells of it once: the number does not grow with the records or the seconds.
        assert all(count <= outage.times for count in warnings.values()), warnings

    async def _until_busy(self) -> None:
        async def is_busy() -> bool:
            rows = await self.tables.rows(
                "SELECT 1 FROM lis.extraction_jobs WHERE status = 'running' LIMIT 1"
            )
            return bool(rows)

        await until(is_busy, within=20, what="a job runs", every=0.02)

    async def _says_what_it_waits_for(self, outage: Outage) -> None:
        if not outage.awaited:
            return

        async def is_told() -> bool:
            status, parts = await self.ready()
            part = parts[outage.awaited]
            return (
                status == 503 and part["detail"] == outage.detail and await self.awaited(outage.awaited) == 1
            )

        await until(is_told, within=30, what=f"/ready says {outage.awaited} {outage.detail}", every=0.2)

    async def _is_ready_again(self) -> None:
        async def is_ready() -> bool:
            status, _ = await self.ready()
            return status == 200 and await self.awaited("database") == await self.awaited("broker") == 0

        await until(is_ready, within=40, what="ready again", every=0.2)

    async def _the_model_has_read_it_all(self) -> None:
        async def is_read() -> bool:
            facts = await self.tables.facts(status="active")
            sessions = {fact["source_session_id"] for fact in facts}
            return sessions == set(self.told) and {fact["extraction_method"] for fact in facts} == {"llm"}

        await until(is_read, within=_REDONE_WITHIN_S, what="the model has read what rules read", every=0.5)

    async def _everything_is_remembered_once(self) -> None:
        async def is_there() -> bool:
            try:
                await self.tables.settled(len(self.told), within=_SESSIONS_WITHIN_S)
            except psycopg.OperationalError:
                # Whoever looks was cut off as well.
                await self.tables.reconnect()
                return False
            return True

        await until(is_there, within=_SESSIONS_WITHIN_S, what="every session has ended")
        jobs = await self.tables.jobs(set(self.told))
        assert {(job["status"], job["revision"], job["attempts"]) for job in jobs} == {("completed", 1, 1)}
        assert {job["session_id"] for job in jobs} == set(self.told)
        assert await self._facts() == {
            (session, fact["key"], fact["value"])
            for session, n in self.told.items()
            for fact in benchmark_facts(n)
        }
        assert await self.tables.rows("SELECT * FROM lis.dead_letters") == []

    async def _facts(self) -> set[tuple[UUID, str, str]]:
        facts = await self.tables.facts(status="active")
        found = [(fact["source_session_id"], fact["fact_key"], fact["fact_value"]) for fact in facts]
        assert len(found) == len(set(found))
        return set(found)

    async def told_once(self) -> None:
        """See that each end of a job went out under one id, and nothing became a dead letter."""
        events = await read_all(self.service.kafka, self.service.topics.events)
        ends = {
            event.header("ce_id"): event.json()["job"]["session_id"]
            for event in events
            if event.header("ce_type") == "memory.job.completed"
        }
        assert sorted(ends.values()) == sorted(map(str, self.told))
        assert await read_all(self.service.kafka, self.service.topics.dead_letters) == []


def told_of_waiting(logs: str) -> list[str]:
    """Return the messages of the service's own warnings, without their time."""
    found = []
    for line in logs.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("level") == "WARNING" and entry["logger"].split(".")[0] in _OURS:
            found.append(f"{entry['logger']} {entry.get('topic', '')} {entry['message']}")
    return found


_OURS: Final = ("consumers", "domain", "gateway", "producers", "service", "storage")


@asynccontextmanager
async def scene(  # noqa: PLR0913 - each of them makes another scene
    folder: Path,
    *,
    kafka: KafkaServer,
    postgres: PostgresServer,
    prefix: str,
    settings: Mapping[str, str],
    has_embedder: bool = False,
    starts_alone: bool = False,
) -> AsyncGenerator[Scene]:
    """Give a ready service whose model answers each benchmark conversation with its facts.

    ``has_embedder``: its vectors come from a server that can be taken away, too. ``starts_alone``: neither
    broker nor database is there when it is started.
    """
    url = postgres.create_database()
    try:
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(ScriptedModel(latency=MODEL_LATENCY_S))
            embedder = await stack.enter_async_context(ScriptedModel()) if has_embedder else None
            embedding = _embedding(embedder) if embedder is not None else {}
            service = RunningService(
                folder,
                kafka=kafka,
                database_url=url,
                topic_prefix=prefix,
                settings={
                    "LLM_PROVIDER_ORDER": "openai",
                    "OPENAI_BASE_URL": f"{model.url}/v1",
                    "OPENAI_MODEL": "scripted",
                    "LOG_FORMAT": "json",
                    **embedding,
                    **settings,
                },
            )
            if starts_alone:
                stack.push_async_exit(service)
                await begins_alone(service, kafka, postgres)
            else:
                await stack.enter_async_context(service)
            async with (
                looking(url) as tables,
                publishing(kafka.bootstrap, request_timeout_ms=_PATIENCE_MS) as publisher,
            ):
                yield Scene(
                    service=service,
                    tables=tables,
                    kafka=kafka,
                    postgres=postgres,
                    model=model,
                    embedder=embedder,
                    publisher=publisher,
                )
    finally:
        postgres.drop_database(url)


async def begins_alone(service: RunningService, kafka: KafkaServer, postgres: PostgresServer) -> None:
    """Start ``service`` with nothing there, see what it says, and give it one thing after the other."""
    kafka.kill()
    await postgres.end()
    try:
        service.spawn()
        for what, comes in (("database", postgres.restart), ("broker", kafka.restart)):
            assert await _says_alone(service, what) == "does not answer"
            assert service.output() == []
            await comes()
    except BaseException:
        await postgres.restart()
        await kafka.restart()
        raise
    await service.ready()


async def _says_alone(service: RunningService, what: str) -> str:
    """Return what a service that starts says of ``what``; all else is unavailable, and it is healthy."""
    detail = ""

    async def has_told() -> bool:
        nonlocal detail
        async with httpx.AsyncClient(base_url=service.http, trust_env=False, timeout=5) as client:
            try:
                parts = (await client.get("/ready")).json()["components"]
            except httpx.ConnectError:
                return False
            memory = await client.get("/get_injection_context", params={"user_id": str(uuid4())})
            assert (await client.get("/health")).status_code == 200
        assert (memory.status_code, memory.json()["error"]["code"]) == (503, "storage_unavailable")
        detail = parts.get(what, {}).get("detail", "")
        return detail not in ("", "starting")

    await until(has_told, within=30, what=f"/ready tells of the {what}", every=0.2)
    return detail


def on_server(postgres: PostgresServer, *statements: sql.SQL | sql.Composed) -> None:
    """Run ``statements`` as whoever runs the server."""
    with psycopg.connect(postgres.url, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


def database_name(url: str) -> str:
    """Return the name of the database at ``url``."""
    return urlsplit(url).path.lstrip("/")


def _body(session: UUID, number: int) -> dict[str, Any]:
    start = f"2026-03-02T09:{number % 60:02d}:00Z"
    messages: Sequence[dict[str, str]] = [
        {"message_id": f"m{place}", "role": role, "content": text}
        for place, (role, text) in enumerate(benchmark_conversation(number))
    ]
    return {"session_id": str(session), "user_id": str(uuid4()), "ended_at": start, "messages": messages}


def _embedding(embedder: ScriptedModel) -> Mapping[str, str]:
    return {
        "MEMORY_EMBED_URL": f"{embedder.url}/embed",
        "EMBEDDING_MODEL": "scripted",
        "EMBEDDING_DIMENSIONS": "512",
    }
