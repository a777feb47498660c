"""A shadow replay of real conversations: compared, promoted, killed in the middle, continued."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.support.kafka import KafkaServer
from tests.support.memorybank import Day, days_of
from tests.support.postgres import PostgresServer
from tests.support.publishing import headers_of, publishing, read_all, until
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.long]

ROOT: Final = Path(__file__).resolve().parents[2]
LABEL: Final = "other-rules-1"
# Other rules are another version of what is extracted: some facts come, some go, all come from elsewhere.
BEFORE: Final = {"MEMORY_RULES_OFF": "en/learning-1,en/goal-1"}
CHANGED: Final = {"MEMORY_RULES_OFF": "en/likes-3,en/routines-2"}
_HEADERS: Final = headers_of(**{"replay-id": LABEL, "replay-generation": LABEL, "replay-mode": "shadow"})
_FACTS: Final = """
SELECT fact_id::text, fact_key, fact_value, status, confidence, revision, valid::text
  FROM lis.memory_facts ORDER BY fact_id"""
_SERVED: Final = """
SELECT count(DISTINCT user_id) AS n FROM lis.sessions WHERE serving_generation <> 'live'"""


async def test_the_difference_is_what_a_promotion_changes_though_it_is_killed_in_the_middle(
    apache_kafka: KafkaServer, postgres: PostgresServer, corpora: Path, topic_prefix: str, tmp_path: Path
) -> None:
    days = days_of(corpora)
    url = postgres.create_database()

    def service(name: str, settings: Mapping[str, str] | None = None) -> RunningService:
        return RunningService(
            tmp_path / name,
            kafka=apache_kafka,
            database_url=url,
            topic_prefix=topic_prefix,
            settings=settings,
        )

    try:
        async with service("live", BEFORE) as live, looking(url) as tables:
            await _play(live, days, live.topics.ended)
            await tables.settled(len(days), within=90)
        async with service("changed", CHANGED) as changed, looking(url) as tables:
            before = await _facts(tables)
            await _start(url)
            await _play(changed, days, changed.topics.replay, _HEADERS)
            await tables.settled(2 * len(days), within=90)
            assert await _facts(tables) == before
        async with service("after", BEFORE) as after, looking(url) as tables:
            lines = await _cli(after, "diff", LABEL)
            await _killed_in_the_middle(after, url, tables)
            (done,) = await _cli(after, "promote", LABEL)
            assert done["users"] > 0
            await tables.settled(2 * len(days), within=30)
            await _is_as_foretold(after, tables, before, lines)
            assert (await _cli(after, "diff", LABEL))[-1]["users"] == 0
    finally:
        postgres.drop_database(url)


async def _play(service: RunningService, days: Sequence[Day], topic: str, headers: Any = ()) -> None:
    async with publishing(service.kafka) as publisher:
        for day in days:
            await publisher.send_json(topic, day.ended(), headers=headers)


async def _start(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute(
            "INSERT INTO lis.replays (replay_id, generation, mode, status, source) "
            "VALUES (%(label)s, %(label)s, 'shadow', 'done', '{}')",
            {"label": LABEL},
        )


async def _facts(tables: Tables) -> Mapping[str, Mapping[str, Any]]:
    return {row["fact_id"]: dict(row) for row in await tables.rows(_FACTS)}


async def _started(service: RunningService, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        *arguments,
        "--json",
        cwd=ROOT,
        env={"AFTERWORD_DATABASE_URL": service.database_url, "AFTERWORD_TOPIC_PREFIX": service.topics.prefix},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _cli(service: RunningService, *arguments: str) -> list[Any]:
    process = await _started(service, *arguments)
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return [json.loads(line) for line in output.splitlines()]


async def _killed_in_the_middle(service: RunningService, url: str, tables: Tables) -> None:
    """Kill a promotion that is held up at a user in the middle: those before are served, the others not."""
    users = [
        row["user_id"] for row in await tables.rows("SELECT DISTINCT user_id FROM lis.sessions ORDER BY 1")
    ]
    async with await psycopg.AsyncConnection.connect(url) as holder:
        await holder.execute("SELECT 1 FROM lis.sessions WHERE user_id = %s FOR UPDATE", [users[7]])
        process = await _started(service, "promote", LABEL)

        async def is_held_up() -> bool:
            waiting = await tables.rows(
                "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
            )
            return bool(waiting)

        await until(is_held_up, within=30, what="the promotion held up", every=0.05)
        process.kill()
        await process.communicate()
        await holder.rollback()
    (served,) = await tables.rows(_SERVED)
    assert 0 < served["n"] < len(users)


async def _is_as_foretold(
    service: RunningService,
    tables: Tables,
    before: Mapping[str, Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
) -> None:
    foretold = {line["fact_id"]: line for line in lines if line["kind"] == "fact"}
    total = lines[-1]
    after = await _facts(tables)
    assert total["added"] + total["gone"] + total["changed"] + total["provenance_alone"] == len(foretold)
    assert total["added"] > 0
    assert total["gone"] > 0
    assert total["provenance_alone"] > 0
    assert {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)} == set(foretold)
    for fact_id, line in foretold.items():
        now, then = after.get(fact_id), before.get(fact_id)
        assert (line["before"] is None, line["after"] is None) == (then is None, now is None)
        for row, told in ((then, line["before"]), (now, line["after"])):
            if row is not None:
                assert (row["fact_value"], row["status"], row["revision"]) == (
                    told["value"],
                    told["status"],
                    told["revision"],
                )
                assert told["evidence"]

    events = [one.json() for one in await read_all(service.kafka, service.topics.events)]
    promoted = [one for one in events if one.get("reason") == "promote" and "fact" in one]
    assert sorted(one["fact"]["fact_id"] for one in promoted) == sorted(foretold)
    print(f"{total} of {len(before)} facts")  # noqa: T201 - the figures are what a reader looks for
