"""History run again by the commands: from the store and from a topic, paused, killed and gone on with."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from producers.client import MemoryClient
from tests.e2e.conftest import Engine
from tests.support.publishing import until
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ROOT: Final = Path(__file__).resolve().parents[2]
MANY: Final = 60
CITIES: Final = ("Porto", "Leeds", "Turin", "Ghent")


async def started(service: RunningService, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        *arguments,
        cwd=ROOT,
        env={
            "AFTERWORD_KAFKA": service.kafka,
            "AFTERWORD_DATABASE_URL": service.database_url,
            "AFTERWORD_TOPIC_PREFIX": service.topics.prefix,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def command(service: RunningService, *arguments: str, code: int = 0) -> tuple[list[Any], str]:
    process = await started(service, *arguments)
    async with asyncio.timeout(90):
        output, errors = await process.communicate()
    assert process.returncode == code, errors.decode()
    return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")], errors.decode()


@asynccontextmanager
async def tenant_of(engine: Engine, count: int) -> AsyncGenerator[tuple[str, MemoryClient]]:
    """A tenant of its own, with ``count`` conversations remembered."""
    tenant = f"t{uuid4().hex[:8]}"
    prefix = engine.topics.prefix
    client = MemoryClient(
        engine.kafka, tenant_id=tenant, topic_prefix=prefix, reply_topic=f"{prefix}engine.replies"
    )
    async with client:
        for number in range(count):
            city = CITIES[number % len(CITIES)]
            conversation = engine.conversation(f"I live in {city}.", day=number, tenant_id=tenant)
            await engine.publisher.send_json(engine.topics.ended, conversation)

        async def done() -> bool:
            return await jobs(engine, tenant, "live") == count

        await until(done, within=60, what=f"{count} conversations to be remembered", every=0.2)
        yield tenant, client


async def jobs(engine: Engine, tenant: str, generation: str) -> int:
    rows = await engine.tables.rows(
        "SELECT 1 FROM lis.extraction_jobs "
        "WHERE tenant_id = %(tenant)s AND generation = %(generation)s AND status = 'completed'",
        {"tenant": tenant, "generation": generation},
    )
    return len(rows)


async def status_of(engine: Engine, label: str) -> dict[str, Any]:
    rows = await engine.tables.rows(
        "SELECT status, published FROM lis.replays WHERE replay_id = %(label)s", {"label": label}
    )
    return dict(rows[0]) if rows else {"status": None, "published": 0}


async def test_stored_sessions_are_shadowed_compared_promoted_and_what_they_replaced_is_dropped(
    afterword: RunningService, engine: Engine
) -> None:
    async with tenant_of(engine, 4) as (tenant, client):
        label = f"s{uuid4().hex[:8]}"
        before = await client.facts(user=engine.user_id)

        (counted,), _ = await command(
            afterword, "replay", "start", "--mode", "shadow", "--tenant", tenant, "--dry-run", "--json"
        )
        (told,), _ = await command(
            afterword, "replay", "start", "--mode", "shadow", "--tenant", tenant, "--id", label, "--json"
        )
        (*_, difference), _ = await command(afterword, "diff", label, "--json")
        (promoted,), _ = await command(afterword, "promote", label, "--json")
        after = await client.facts(user=engine.user_id)
        listed, _ = await command(afterword, "replay", "list", "--json")
        _, refusal = await command(afterword, "replay", "discard", label, "--yes", code=1)
        (dropped,), _ = await command(afterword, "replay", "discard", label, "--replaced", "--yes", "--json")

    assert counted == {"conversations": 4}
    assert (told["status"], told["published"], told["jobs"]) == ("done", 4, {"completed": 4})
    assert (difference["added"], difference["gone"], difference["changed"]) == (0, 0, 0)
    assert promoted["users"] == 1
    assert [(one.fact_id, one.fact_value) for one in after.items] == [
        (one.fact_id, one.fact_value) for one in before.items
    ]
    assert {one["replay_id"]: one["status"] for one in listed}[label] == "promoted"
    assert "serves" in refusal
    assert dropped["removed"] == 4


async def test_what_is_lost_in_the_store_is_filled_in_from_the_topic(
    afterword: RunningService, engine: Engine
) -> None:
    async with tenant_of(engine, 4) as (tenant, client):
        await engine.tables.rows(
            "WITH gone AS (DELETE FROM lis.extraction_jobs WHERE tenant_id = %(tenant)s RETURNING 1), "
            "said AS (DELETE FROM lis.assertions WHERE tenant_id = %(tenant)s RETURNING 1), "
            "facts AS (DELETE FROM lis.memory_facts WHERE tenant_id = %(tenant)s RETURNING 1) "
            "SELECT count(*) FROM gone, said, facts",
            {"tenant": tenant},
        )
        topic = ("--topic", "conversation.ended.v1", "--tenant", tenant)

        (told,), _ = await command(
            afterword, "replay", "start", *topic, "--from-offset", "0", "--rate", "0", "--json"
        )

        assert told["status"] == "done"
        assert told["published"] == 4
        assert await jobs(engine, tenant, "live") == 4
        assert [one.fact_value for one in (await client.facts(user=engine.user_id)).items] == [CITIES[3]]


async def test_a_replay_is_paused_killed_gone_on_with_and_fed_by_one_command_alone(
    afterword: RunningService, engine: Engine
) -> None:
    async with tenant_of(engine, MANY) as (tenant, _):
        label = f"r{uuid4().hex[:8]}"
        feeding = await started(
            afterword,
            "replay",
            "start",
            "--mode",
            "reprocess",
            "--tenant",
            tenant,
            "--id",
            label,
            "--rate",
            "3",
        )
        await until(lambda: _published(engine, label, 5), within=30, what="a replay under way", every=0.1)

        _, refusal = await command(afterword, "replay", "resume", label, code=1)
        await command(afterword, "replay", "pause", label)
        _, errors = await feeding.communicate()
        paused = await status_of(engine, label)

        again = await started(afterword, "replay", "resume", label, "--rate", "3")
        await until(
            lambda: _published(engine, label, paused["published"] + 3),
            within=30,
            what="more of it",
            every=0.1,
        )
        again.send_signal(signal.SIGKILL)
        await again.wait()
        # As if the moment had passed in which its command might still live.
        await engine.tables.rows(
            "UPDATE lis.replays SET updated_at = now() - interval '1 minute' "
            "WHERE replay_id = %(label)s RETURNING 1",
            {"label": label},
        )
        (told,), _ = await command(afterword, "replay", "resume", label, "--rate", "0", "--json")

        assert "another command feeds" in refusal
        assert feeding.returncode == 0
        assert f"afterword replay resume {label}" in errors.decode()
        assert paused["status"] == "paused"
        assert 5 <= paused["published"] < MANY
        assert told["status"] == "done"
        assert told["published"] >= MANY
        assert await jobs(engine, tenant, label) == MANY
        serving = await engine.tables.rows(
            "SELECT DISTINCT serving_generation FROM lis.sessions WHERE tenant_id = %(tenant)s",
            {"tenant": tenant},
        )
        assert [row["serving_generation"] for row in serving] == [label]


async def _published(engine: Engine, label: str, count: int) -> bool:
    return bool((await status_of(engine, label))["published"] >= count)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("start", "--mode", "redo"), "--mode"),
        (("start", "--from-offset", "1"), "--from-offset"),
        (("start", "--from", "yesterday"), "--from"),
        (("start", "--id", "Live!"), "--id"),
        (("start", "--topic", "no.such.topic"), "--topic"),
        (("discard", "x"), "--yes"),
    ],
)
async def test_a_wrong_option_is_named(
    afterword: RunningService, arguments: tuple[str, ...], named: str
) -> None:
    _, errors = await command(afterword, "replay", *arguments, code=2)

    assert named in errors


async def test_a_replay_that_is_not_there_is_said_to_be_so(afterword: RunningService) -> None:
    _, errors = await command(afterword, "replay", "resume", str(UUID(int=0)), code=1)

    assert "there is no replay" in errors
