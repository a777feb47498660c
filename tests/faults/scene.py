"""The service of one round: replicas in processes of their own, on a database and topics of their own."""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import psycopg

from schemas.topics import Topics
from storage.migrate import migrate
from tests.faults.corpus import JOB_ATTEMPTS, TENANTS
from tests.faults.model import Model
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, ServiceFailedError

ROOT: Final = Path(__file__).resolve().parents[2]

PAIRS: Final[Mapping[str, str]] = {
    f"{name}-{number}": roles
    for number in (1, 2)
    for name, roles in (
        ("writing", "intake,relay,upkeep,commands,http"),
        ("extraction", "extraction"),
        ("responder", "responder"),
    )
}
"""Two replicas of every role. What works beside extraction in one process would always die with it."""

WHOLE: Final[Mapping[str, str]] = {f"whole-{number}": "intake,extraction,relay,upkeep" for number in (1, 2)}
"""Two replicas of every role that writes, in few processes that start quickly."""

_SETTINGS: Final[Mapping[str, str]] = {
    "AFTERWORD_SESSION_TIMEOUT_MS": "3000",
    "AFTERWORD_HEARTBEAT_MS": "500",
    "AFTERWORD_DRAIN_SEC": "2",
    "AFTERWORD_SHUTDOWN_SEC": "8",
    "AFTERWORD_JOB_ATTEMPTS": str(JOB_ATTEMPTS),
    "AFTERWORD_JOB_RETRY_SEC": "0.2",
    "AFTERWORD_ENDED_GRACE_SEC": "1",
    "MEMORY_MAX_TRANSCRIPT_CHARS": "500",
    # The model of a round judges nothing: its vectors are near by chance.
    "MEMORY_JUDGE_DISTANCE": "0",
}
_STOPPING_S: Final = 20.0
_READY_S: Final = 150.0
_LONGEST_GAP_S: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Which processes there are, by name and roles.

    With ``is_static`` a start is the same member of its groups; those ``late`` are not there from the start;
    ``launcher`` is the module that runs.
    """

    roles: Mapping[str, str]
    is_static: bool = True
    late: frozenset[str] = frozenset()
    launcher: Sequence[str] = ("service", "run")


ALONE: Final = Cast(roles={"alone": "intake,extraction,relay,upkeep"})
"""One of everything that writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The servers that all rounds share."""

    kafka: KafkaServer
    postgres: PostgresServer
    template: str

    @classmethod
    async def of(cls, kafka: KafkaServer, postgres: PostgresServer) -> "Ground":
        """Prepare a database that those of the rounds are copied from."""
        template = postgres.create_database()
        await migrate(template)
        with psycopg.connect(template, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO lis.tenants (tenant_id, plan) VALUES (%s, %s)", list(TENANTS.items())
            )
        return cls(kafka=kafka, postgres=postgres, template=template)


class Replica:
    """One process of the service, hit by one blow at a time. ``broken`` says what it should not have done."""

    def __init__(self, name: str, service: RunningService) -> None:
        self.name = name
        self.service = service
        self.broken: list[str] = []
        self._is_there = False
        self._one_at_a_time = asyncio.Lock()

    async def start(self) -> None:
        """Start it and see it ready."""
        async with self._one_at_a_time:
            self._is_there = True
            await self.service.start(within=_READY_S)

    async def kill(self, chance: random.Random) -> None:
        """SIGKILL it, and start it again after a while."""
        await self.crash(pause=chance.uniform(0.0, _LONGEST_GAP_S))

    async def crash(self, *, pause: float = 0.0) -> None:
        """SIGKILL it, and start it again after ``pause`` seconds."""
        async with self._one_at_a_time:
            self._check_alive()
            self.service.kill()
            await self.service.wait()
            await self._again(pause)

    async def terminate(self, chance: random.Random) -> None:
        """SIGTERM it, see it end well, and start it again after a while."""
        await self.restart(pause=chance.uniform(0.0, _LONGEST_GAP_S))

    async def restart(self, *, pause: float = 0.0) -> None:
        """SIGTERM it, see it end well, and start it again after ``pause`` seconds."""
        async with self._one_at_a_time:
            self._check_alive()
            await self._ended()
            await self._again(pause)

    async def freeze(self, seconds: float) -> None:
        """SIGSTOP it for ``seconds``, then let it go on."""
        async with self._one_at_a_time:
            self._check_alive()
            self.service.freeze()
            try:
                await asyncio.sleep(seconds)
            finally:
                self.service.thaw()

    async def end(self) -> None:
        """End it for good."""
        async with self._one_at_a_time:
            self._check_alive()
            await self._ended()
            self._is_there = False

    def _check_alive(self) -> None:
        if self._is_there and self.service.returncode is not None:
            self.broken.append(f"{self.name} ended by itself with {self.service.returncode}")

    async def _ended(self) -> None:
        if not self._is_there or self.service.returncode is not None:
            return
        try:
            code = await self.service.terminate(within=_STOPPING_S)
        except ServiceFailedError:
            self.broken.append(f"{self.name} did not end within {_STOPPING_S:.0f} s of SIGTERM")
            self.service.kill()
            return
        if code != 0:
            self.broken.append(f"{self.name} ended with {code} on SIGTERM")

    async def _again(self, pause: float) -> None:
        await asyncio.sleep(pause)
        try:
            # It may have to wait for a broker that is just coming back.
            await self.service.start(within=_READY_S)
        except ServiceFailedError as error:
            self.broken.append(f"{self.name} did not start again: {str(error)[:200]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Replicas, broker and database of one round."""

    ground: Ground
    database_url: str
    topics: Topics
    folder: Path
    model: Model
    replicas: Mapping[str, Replica]

    @property
    def kafka(self) -> str:
        """The address of the broker."""
        return self.ground.kafka.bootstrap

    @property
    def broken(self) -> list[str]:
        """What the processes should not have done."""
        return [line for replica in self.replicas.values() for line in replica.broken]

    async def end(self) -> list[str]:
        """End every process in order; say what did not."""
        await asyncio.gather(*(replica.end() for replica in self.replicas.values()))
        alone = await asyncio.gather(*(replica.service.is_alone() for replica in self.replicas.values()))
        left = [name for name, is_alone in zip(self.replicas, alone, strict=True) if not is_alone]
        return [f"{name} left a process behind" for name in left]


@asynccontextmanager
async def scene(
    ground: Ground,
    model: Model,
    cast: Cast,
    *,
    folder: Path,
) -> AsyncGenerator[Scene]:
    """Give the processes of ``cast``, all ready, with topics and a database of their own."""
    prefix = f"faults-{uuid4().hex[:10]}."
    url = ground.postgres.create_database(ground.template)
    where = {"database_url": url, "topic_prefix": prefix}
    replicas = {name: _replica(name, ground, model, cast, folder / name, where) for name in cast.roles}
    try:
        await asyncio.gather(*(one.start() for name, one in replicas.items() if name not in cast.late))
        yield Scene(
            ground=ground,
            database_url=url,
            topics=Topics(prefix),
            folder=folder,
            model=model,
            replicas=replicas,
        )
    finally:
        for replica in replicas.values():
            replica.service.clear()
        ground.postgres.drop_database(url)


def _replica(
    name: str, ground: Ground, model: Model, cast: Cast, folder: Path, where: Mapping[str, str]
) -> Replica:
    service = RunningService(
        folder,
        kafka=ground.kafka,
        settings={
            **_SETTINGS,
            **model.settings,
            **({"AFTERWORD_INSTANCE_ID": name} if cast.is_static else {}),
            "PYTHONPATH": str(ROOT),
        },
        arguments=("--roles", cast.roles[name]),
        **where,
    )
    service.launcher = cast.launcher
    return Replica(name, service)
