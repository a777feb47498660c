"""History run again by the commands: from the store and from a topic, paused, killed and gone on with."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import anyio
import pytest
from typer.testing import CliRunner, Result

from producers.client import MemoryClient
from service.cli.commands import app
from tests.e2e.conftest import Engine
from tests.support.publishing import Outgoing, until
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ROOT: Final = Path(__file__).resolve().parents[2]
MANY: Final = 24
CITIES: Final = ("Porto", "Leeds", "Turin", "Ghent")


def settings_of(service: RunningService) -> dict[str, str]:
    return {
        "AFTERWORD_KAFKA": service.kafka,
        "AFTERWORD_DATABASE_URL": service.database_url,
        "AFTERWORD_TOPIC_PREFIX": service.topics.prefix,
    }


async def started(service: RunningService, *arguments: str) -> asyncio.subprocess.Process:
    """Start a command of a process of its own, which alone can be sent signals."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "service", *arguments),
        cwd=ROOT,
        env=settings_of(service),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def fed(service: RunningService, *arguments: str) -> Any:
    """Run a command that feeds and return what it told."""
    process = await started(service, *arguments, "--json")
    async with asyncio.timeout(90):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def command(service: RunningService, *arguments: str, code: int = 0) -> tuple[list[Any], str]:
    """Run a command that does not feed, here; return its lines of JSON and what it said beside them."""

    def run(given: Sequence[str]) -> Result:
        return CliRunner(env=settings_of(service)).invoke(app, given)

    shown = await anyio.to_thread.run_sync(run, arguments)
    assert shown.exit_code == code, (shown.output, shown.exception)
    lines = [json.loads(line) for line in shown.stdout.splitlines() if line.startswith("{")]
    return lines, f"{shown.stderr} {shown.exception}"


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
        shadow = ("--mode", "shadow", "--tenant", tenant, "--id", label)
        told = await fed(afterword, "replay", "start", *shadow)
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
        other = engine.conversation("I live in Oslo.", tenant_id=f"t{uuid4().hex[:8]}")
        await engine.publisher.send_json(engine.topics.ended, other)
        await engine.publisher.send(Outgoing(topic=engine.topics.ended, value=b"\xffno json", key=b"k"))
        topic = ("--topic", "conversation.ended.v1", "--from-offset", "0", "--tenant", tenant)

        (counted,), _ = await command(afterword, "replay", "start", *topic, "--dry-run", "--json")
        told = await fed(afterword, "replay", "start", *topic, "--rate", "0")

        assert (told["status"], told["published"], told["missing"]) == ("done", 4, 0)
        assert told["skipped"]["no_conversation"] >= 1
        assert told["skipped"]["other_tenant"] >= 1
        assert counted["records"] <= told["total"] == 4 + sum(told["skipped"].values())
        assert await jobs(engine, tenant, "live") == 4
        assert [one.fact_value for one in (await client.facts(user=engine.user_id)).items] == [CITIES[3]]


async def test_a_replay_is_paused_killed_gone_on_with_and_fed_by_one_command_alone(
    afterword: RunningService, engine: Engine
) -> None:
    async with tenant_of(engine, MANY) as (tenant, _):
        label = f"r{uuid4().hex[:8]}"
        feeding = await started(
            afterword,
            *("replay", "start", "--mode", "reprocess", "--tenant", tenant, "--id", label),
            *("--rate", "0.5"),
        )
        await until(lambda: _published(engine, label, 2), within=30, what="a replay under way", every=0.1)

        _, refusal = await command(afterword, "replay", "resume", label, code=1)
        beside = await engine.tell(engine.conversation("I live in Oslo."))
        await command(afterword, "replay", "pause", label)
        _, errors = await feeding.communicate()
        paused = await status_of(engine, label)

        again = await started(afterword, "replay", "resume", label, "--rate", "0.5")
        more = paused["published"] + 2
        await until(lambda: _published(engine, label, more), within=30, what="more of it", every=0.1)
        again.send_signal(signal.SIGKILL)
        await again.wait()
        # As if the moment had passed in which its command might still live.
        await engine.tables.rows(
            "UPDATE lis.replays SET updated_at = now() - interval '1 minute' "
            "WHERE replay_id = %(label)s RETURNING 1",
            {"label": label},
        )
        told = await fed(afterword, "replay", "resume", label, "--rate", "0")

        assert "another command feeds" in refusal
        assert beside.status == "completed"
        assert feeding.returncode == 0
        assert f"afterword replay resume {label}" in errors.decode()
        assert paused["status"] == "paused"
        assert 2 <= paused["published"] < MANY
        assert (told["status"], told["missing"]) == ("done", 0)
        # Killed between the broker's answer and its note, a page comes again.
        assert told["published"] + 1 >= MANY
        assert await jobs(engine, tenant, label) == MANY
        serving = await engine.tables.rows(
            "SELECT DISTINCT serving_generation FROM lis.sessions WHERE tenant_id = %(tenant)s",
            {"tenant": tenant},
        )
        assert [row["serving_generation"] for row in serving] == [label]


async def _published(engine: Engine, label: str, count: int) -> bool:
    return bool((await status_of(engine, label))["published"] >= count)


async def test_a_topic_and_a_replay_that_are_not_there_are_said_to_be_so(afterword: RunningService) -> None:
    _, topic = await command(afterword, "replay", "start", "--topic", "no.such.topic", code=2)
    _, replay = await command(afterword, "replay", "resume", str(UUID(int=0)), code=1)

    assert "--topic" in topic
    assert "there is no replay" in replay
