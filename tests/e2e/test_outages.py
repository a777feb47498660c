"""What the service needs goes away and comes back: nothing lost, nothing twice, no hand needed.

One service lives through all of it, one outage after the other; when it was started, neither broker nor
database was there.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final
from uuid import uuid4

import httpx
import pytest
from psycopg import sql

from producers.client import MemoryClient
from producers.client_errors import MemoryClientError
from tests.support.kafka import KafkaServer
from tests.support.outages import Outage, Scene, database_name, nothing, on_server, scene
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SHORT_S: Final = 2.0
LONG_S: Final = 60.0
_ANSWER_S: Final = "3"
_CUTS: Final = 10
# Less than callers wait by default.
_PROMPT_S: Final = 9.0
_INJECTION: Final = "/get_injection_context"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def suffering(
    kafka: KafkaServer, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Scene]:
    if not (kafka.kind == "apache" and kafka.can_restart and postgres.can_restart):
        pytest.skip(f"needs an Apache Kafka and a PostgreSQL of its own, not {kafka.kind}, {postgres.kind}")
    folder = tmp_path_factory.mktemp("outages")
    async with scene(
        folder,
        kafka=kafka,
        postgres=postgres,
        prefix="outages.",
        settings={"DB_ANSWER_SEC": _ANSWER_S},
        starts_alone=True,
    ) as service:
        yield service


def broker_away(scene: Scene) -> Outage:
    async def go() -> None:
        scene.kafka.freeze()

    async def back() -> None:
        scene.kafka.thaw()

    return Outage(go=go, back=back, awaited="broker", detail="does not answer")


def broker_killed(scene: Scene) -> Outage:
    async def go() -> None:
        scene.kafka.kill()

    return Outage(go=go, back=scene.kafka.restart, awaited="broker", detail="does not answer")


def database_killed(scene: Scene) -> Outage:
    async def go() -> None:
        scene.postgres.kill()

    return Outage(go=go, back=scene.postgres.restart, awaited="database", detail="does not answer")


def database_restarted(scene: Scene) -> Outage:
    return Outage(
        go=scene.postgres.end, back=scene.postgres.restart, awaited="database", detail="does not answer"
    )


def database_frozen(scene: Scene) -> Outage:
    async def go() -> None:
        scene.postgres.freeze()

    async def back() -> None:
        scene.postgres.thaw()

    return Outage(go=go, back=back, awaited="database", detail="does not answer")


def database_read_only(scene: Scene) -> Outage:
    name = sql.Identifier(database_name(scene.service.database_url))

    async def go() -> None:
        # As after a switch: whoever is connected is cut off and finds a server that takes no writes.
        setting = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        on_server(scene.postgres, setting, _cut_off(scene))
        await scene.tables.reconnect()

    async def back() -> None:
        # Connections of meanwhile stay: they must not be used for ever.
        setting = sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name)
        on_server(scene.postgres, setting)

    return Outage(go=go, back=back, awaited="database", detail="takes no writes")


def connections_cut(scene: Scene) -> Outage:
    async def go() -> None:
        for _ in range(_CUTS):
            on_server(scene.postgres, _cut_off(scene))
            await asyncio.sleep(0.1)
        await scene.tables.reconnect()

    return Outage(go=go, back=nothing, times=_CUTS)


def _cut_off(scene: Scene) -> sql.Composed:
    name = sql.Literal(database_name(scene.service.database_url))
    return sql.SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}").format(name)


SHORT: Final[tuple[Callable[[Scene], Outage], ...]] = (
    broker_killed,
    database_frozen,
    database_read_only,
    connections_cut,
)
MINUTES: Final[tuple[Callable[[Scene], Outage], ...]] = (
    broker_away,
    broker_killed,
    database_killed,
    database_restarted,
    database_frozen,
    database_read_only,
)


@pytest.mark.parametrize("outage", SHORT, ids=lambda outage: outage.__name__)
async def test_an_outage_loses_and_doubles_nothing_and_needs_no_hand(
    suffering: Scene, outage: Callable[[Scene], Outage]
) -> None:
    await suffering.suffers(outage(suffering), seconds=SHORT_S)


@pytest.mark.long
@pytest.mark.parametrize("outage", MINUTES, ids=lambda outage: outage.__name__)
async def test_an_outage_of_a_minute_loses_and_doubles_nothing_and_needs_no_hand(
    suffering: Scene, outage: Callable[[Scene], Outage]
) -> None:
    await suffering.suffers(outage(suffering), seconds=LONG_S)


async def test_an_injection_that_meets_a_frozen_database_is_told_so_in_time(suffering: Scene) -> None:
    prefix = suffering.service.topics.prefix
    client = MemoryClient(suffering.service.kafka, topic_prefix=prefix, reply_topic=f"{prefix}frozen.replies")
    async with client, httpx.AsyncClient(base_url=suffering.service.http, trust_env=False) as http:
        await client.inject(user=uuid4())
        suffering.postgres.freeze()
        try:
            with pytest.raises(MemoryClientError) as over_kafka:
                await client.inject(user=uuid4(), timeout=_PROMPT_S)
            over_http = await http.get(_INJECTION, params={"user_id": str(uuid4())}, timeout=_PROMPT_S)
        finally:
            suffering.postgres.thaw()
        await suffering.suffers(Outage(go=nothing, back=nothing), seconds=0)
        await client.inject(user=uuid4())

    assert (over_kafka.value.code, over_kafka.value.retryable) == ("storage_unavailable", True)
    assert (over_http.status_code, over_http.json()["error"]["code"]) == (503, "storage_unavailable")


async def test_memory_is_read_while_the_database_takes_no_writes(suffering: Scene) -> None:
    await suffering.suffers(Outage(go=nothing, back=nothing), seconds=0)
    someone = (await suffering.tables.facts(status="active"))[0]["user_id"]
    outage = database_read_only(suffering)

    await outage.go()
    try:
        async with httpx.AsyncClient(base_url=suffering.service.http, trust_env=False) as http:
            answers = [await http.get(_INJECTION, params={"user_id": str(someone)}) for _ in range(3)]
    finally:
        await outage.back()

    assert [answer.json()["applied"] for answer in answers] == [True] * 3
    await suffering.suffers(Outage(go=nothing, back=nothing), seconds=0)


async def test_after_all_of_them_every_end_was_told_and_nothing_became_a_dead_letter(
    suffering: Scene,
) -> None:
    await suffering.told_once()
