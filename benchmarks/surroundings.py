"""What is measured: service, broker, database and stand-in for the model, each in processes of its own."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psutil
import psycopg

from tests.support.kafka import KafkaServer, running_kafka
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService
from tests.support.surroundings import read_surroundings

MODEL_S: Final = 0.3
_BROKERS: Final = ("kafka.Kafka", "tansu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Broker and database of all runs."""

    kafka: KafkaServer
    postgres: PostgresServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run's service with the process ids of everything around it."""

    service: RunningService
    pids: Mapping[str, int]


@contextmanager
def servers() -> Generator[Servers]:
    """Start broker and database as the tests do."""
    found = read_surroundings()
    with running_kafka(found) as kafka, running_postgres(found) as postgres:
        yield Servers(kafka=kafka, postgres=postgres)


@asynccontextmanager
async def measured(on: Servers) -> AsyncGenerator[Measured]:
    """Give a service of its own to one run: new topics and groups, an empty database, a checkpoint before."""
    url = on.postgres.create_database()
    with tempfile.TemporaryDirectory(prefix="afterword-bench-") as folder:
        try:
            async with (
                ScriptedModel(latency=MODEL_S) as model,
                _service(Path(folder), on, url, model) as service,
            ):
                await asyncio.to_thread(_checkpoint, url)
                yield Measured(service=service, pids=_pids(service, model))
        finally:
            on.postgres.drop_database(url)


@asynccontextmanager
async def _service(
    folder: Path, on: Servers, url: str, model: ScriptedModel
) -> AsyncGenerator[RunningService]:
    service = RunningService(
        folder,
        kafka=on.kafka,
        database_url=url,
        topic_prefix=f"bench-{uuid4().hex[:8]}.",
        settings={
            "LLM_PROVIDER_ORDER": "openai",
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_MODEL": "scripted",
            "LOG_LEVEL": "WARNING",
        },
    )
    async with service:
        yield service


def _told(process: psutil.Process) -> tuple[str, str]:
    """Return command line and name, empty for a process that has just ended."""
    try:
        return " ".join(process.cmdline()), process.name()
    except psutil.NoSuchProcess:
        return "", ""


def _pids(service: RunningService, model: ScriptedModel) -> dict[str, int]:
    children = psutil.Process().children()
    found = {"service": service.pid, "stand-in": model.pid}
    for child in children:
        command, name = _told(child)
        if any(broker in command for broker in _BROKERS):
            found["broker"] = child.pid
        elif "postgres" in name and child.pid not in found.values():
            found["PostgreSQL"] = child.pid
    return found


def _checkpoint(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


class Helper:
    """A process of ours that takes its order from standard input and prints JSON."""

    def __init__(self, module: str, order: Mapping[str, Any]) -> None:
        self._module = module
        self._order = order
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(self._order).encode() + b"\n")

    async def line(self) -> str:
        """Return its next line."""
        assert self._process is not None
        assert self._process.stdout is not None
        return (await self._process.stdout.readuntil(b"\n")).decode().strip()

    async def result(self) -> dict[str, Any]:
        """Return what it found, when it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        output = await self._process.stdout.read()
        code = await self._process.wait()
        if code != 0:
            raise RuntimeError(f"{self._module} ended with {code}")
        found: dict[str, Any] = json.loads(output)
        return found

    async def stop(self) -> None:
        """End it if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
