"""Dead letters by the commands: listed, shown, redriven by class, interrupted and continued, purged."""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.e2e.conftest import MORNING, Engine
from tests.support.publishing import Outgoing, read_all, until
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ROOT: Final = Path(__file__).resolve().parents[2]
CLASSES: Final = ("undecodable", "invalid", "permanent", "exhausted")
EACH: Final = 250
ODD: Final = ("trace-bytes", b"\xff\xfe\x00")
# The classes come from what was wrong when they died; what is wrong is corrected by the time of the redrive.
SEED: Final = """
INSERT INTO lis.dead_letters (topic, partition, "offset", error_class, reason, attempts, key, value,
                              header_names, header_values, tenant_id)
SELECT %(topic)s, n %% 3, n, (%(classes)s::text[])[1 + n %% 4], 'was wrong then', 1,
       convert_to('default:' || gen_random_uuid(), 'UTF8'),
       convert_to(json_build_object('session_id', gen_random_uuid(), 'user_id', gen_random_uuid(),
           'ended_at', %(ended_at)s::text, 'messages', json_build_array())::text, 'UTF8'),
       ARRAY['trace-bytes'], ARRAY['\\xfffe00'::bytea], 'default'
  FROM generate_series(0, 999) AS n"""


async def started(service: RunningService, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        "dlq",
        *arguments,
        cwd=ROOT,
        env={
            "AFTERWORD_DATABASE_URL": service.database_url,
            "AFTERWORD_TOPIC_PREFIX": service.topics.prefix,
            "COLUMNS": "250",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def dlq(service: RunningService, *arguments: str, code: int = 0) -> list[Any]:
    process = await started(service, *arguments, "--json")
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert process.returncode == code, errors.decode()
    return [json.loads(line) for line in output.splitlines()]


async def sent_again(engine: Engine, topic: str) -> Counter[str]:
    """How often each letter of ``topic`` was sent to the replay topic, by its place."""
    records = await read_all(engine.kafka, engine.topics.replay)
    assert all(ODD in one.headers for one in records if one.header("dlq-topic") == topic)
    return Counter(
        f"{one.header('dlq-partition')}/{one.header('dlq-offset')}"
        for one in records
        if one.header("dlq-topic") == topic
    )


async def statuses(engine: Engine, topic: str) -> Counter[str]:
    rows = await engine.tables.rows("SELECT status FROM lis.dead_letters WHERE topic = %(t)s", {"t": topic})
    return Counter(row["status"] for row in rows)


async def closed(engine: Engine, topic: str, count: int) -> None:
    async def is_closed() -> bool:
        return (await statuses(engine, topic))["closed"] == count

    await until(is_closed, within=60, what=f"{count} letters closed", every=0.2)


async def test_a_thousand_letters_are_redriven_by_class_once_each_though_the_command_is_killed(
    afterword: RunningService, engine: Engine
) -> None:
    topic = engine.topics.ended
    params = {"topic": topic, "classes": list(CLASSES), "ended_at": MORNING.isoformat()}
    async with await engine.tables._connection.execute(SEED, params):
        pass

    listed = await dlq(afterword, "list", "--topic", "conversation.ended.v1", "--limit", "2000")
    assert Counter(one["class"] for one in listed) == dict.fromkeys(CLASSES, EACH)
    (dry,) = await dlq(afterword, "redrive", "--topic", topic, "--class", "invalid", "--dry-run")
    assert (dry["matching"], dry["dry_run"]) == (EACH, True)
    assert await statuses(engine, topic) == {"open": 1000}

    (done,) = await dlq(afterword, "redrive", "--topic", topic, "--class", "invalid", "--limit", "100")
    assert done["redriven"] == 100
    await closed(engine, topic, 100)

    await _kill_in_the_middle(afterword, engine, topic)
    for error_class in CLASSES:
        while (await dlq(afterword, "redrive", "--topic", topic, "--class", error_class, "--limit", "100"))[
            0
        ]["redriven"]:
            continue
    await closed(engine, topic, 1000)

    sent = await sent_again(engine, topic)
    assert len(sent) == 1000
    assert set(sent.values()) == {1}

    assert (await _text(afterword, "purge", "--topic", topic))[0] == 2
    (gone,) = await dlq(afterword, "purge", "--topic", topic, "--class", "permanent", "--yes")
    assert gone["purged"] == EACH
    assert await statuses(engine, topic) == {"closed": 1000 - EACH}
    await dlq(afterword, "purge", "--topic", topic, "--yes")


async def _kill_in_the_middle(service: RunningService, engine: Engine, topic: str) -> None:
    process = await started(service, "redrive", "--topic", topic, "--class", "permanent")
    was_open = (await statuses(engine, topic))["open"]

    async def is_under_way() -> bool:
        return (await statuses(engine, topic))["open"] < was_open

    await until(is_under_way, within=30, what="the redrive began", every=0.01)
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    left = (await statuses(engine, topic))["open"]
    assert was_open - EACH < left < was_open, "it was not in the middle"


async def _text(service: RunningService, *arguments: str) -> tuple[int | None, str]:
    process = await started(service, *arguments)
    output, errors = await process.communicate()
    return process.returncode, (output + errors).decode()


async def test_a_letter_shows_no_secret_unless_asked_and_comes_again_as_it_was(
    afterword: RunningService, engine: Engine
) -> None:
    broken = Outgoing(
        topic=engine.topics.ended,
        key=b"default:somebody",
        value=b'{"note": "my p\\u0061ssword is Xy12-hunter", "password": "Tr0ub4dor"}',
        headers=(ODD, ("authorization", b"Bearer abcdefghijklmnop1234")),
    )
    ((partition, offset),) = await engine.publisher.send(broken)
    place = (engine.topics.ended, str(partition), str(offset))
    await _in_status(engine, place, "open")

    (shown,) = await dlq(afterword, "show", *place)
    assert not [word for word in ("hunter", "Tr0ub4dor", "abcdefgh") if word in json.dumps(shown)]
    (raw,) = await dlq(afterword, "show", *place, "--raw")
    assert "Tr0ub4dor" in raw["value"]
    code, text = await _text(afterword, "show", *place)
    assert (code, "hunter" in text) == (0, False)

    await dlq(afterword, "redrive", "--topic", engine.topics.ended)
    await _in_status(engine, place, "open", replays=1)
    again = [one for one in await read_all(engine.kafka, engine.topics.replay) if one.value == broken.value]
    assert [(one.key, one.headers[:2]) for one in again] == [(broken.key, broken.headers)]
    assert (await dlq(afterword, "list", "--topic", engine.topics.replay)) == []
    assert (await _text(afterword, "show", engine.topics.ended, "0", "99999999"))[0] == 1


async def test_a_message_that_died_is_posted_by_its_redrive(
    afterword: RunningService, engine: Engine
) -> None:
    session = str(uuid4())
    first = {"session_id": session, "user_id": str(uuid4()), "position": 0, "role": "user", "content": "Hm."}
    await engine.publisher.send_json(engine.topics.messages, first, key=session)
    other = {**first, "user_id": str(engine.user_id), "content": "I live in Porto."}
    value = json.dumps(other).encode()
    ((partition, offset),) = await engine.publisher.send(
        Outgoing(topic=engine.topics.messages, key=session.encode(), value=value)
    )
    place = (engine.topics.messages, str(partition), str(offset))
    await _in_status(engine, place, "open")

    # The session was somebody else's; once it is gone, the message has its place.
    await engine.tables._connection.execute("DELETE FROM lis.chat_messages WHERE session_id = %s", (session,))
    await engine.tables._connection.execute("DELETE FROM lis.sessions WHERE session_id = %s", (session,))
    await dlq(afterword, "redrive", "--topic", engine.topics.messages)
    await _in_status(engine, place, "closed", replays=1)

    rows = await engine.tables.rows(
        "SELECT m.content, m.sent_at = d.sent_at AS is_then"
        " FROM lis.chat_messages AS m, lis.dead_letters AS d"
        " WHERE m.session_id = %(session)s AND d.topic = %(topic)s",
        {"session": session, "topic": engine.topics.messages},
    )
    assert [(row["content"], row["is_then"]) for row in rows] == [("I live in Porto.", True)]


async def _in_status(engine: Engine, place: Sequence[str], status: str, *, replays: int = 0) -> None:
    topic, partition, offset = place
    names = {"topic": topic, "partition": partition, "offset": offset}

    async def is_there() -> bool:
        rows = await engine.tables.rows(
            "SELECT status, replays FROM lis.dead_letters"
            ' WHERE topic = %(topic)s AND partition = %(partition)s::int AND "offset" = %(offset)s::bigint',
            names,
        )
        return [(row["status"], row["replays"]) for row in rows] == [(status, replays)]

    await until(is_there, within=20, what=f"letter {status}", every=0.1)
