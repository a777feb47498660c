"""Everything that a round left behind: tables, topics, offsets, locks; read once, looked at afterwards."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString
from uuid import UUID

from schemas.topics import LANES
from tests.faults.scene import Scene
from tests.support.publishing import Read, lag, read_all, until
from tests.support.tables import Row, Tables

_QUERIES: Final[Mapping[str, LiteralString]] = {
    "jobs": "SELECT * FROM lis.extraction_jobs ORDER BY queued_at",
    "sessions": "SELECT * FROM lis.sessions",
    "versions": "SELECT * FROM lis.memory_versions ORDER BY user_id, tenant_id, avatar_id, number",
    "facts": "SELECT * FROM lis.memory_facts",
    "scopes": "SELECT * FROM lis.scopes",
    "letters": 'SELECT * FROM lis.dead_letters ORDER BY topic, partition, "offset"',
    "outbox": "SELECT * FROM lis.outbox ORDER BY id",
    "idle": """
        SELECT pid, state, left(query, 200) AS query, now() - state_change AS age
          FROM pg_stat_activity
         WHERE datname = current_database()
           AND state LIKE 'idle in transaction%'
           AND state_change < now() - interval '1 second'""",
}
# Without what comes of sessions that die, of which an undisturbed run has none.
_RECALL: Final[LiteralString] = """
    SELECT tenant_id, user_id, avatar_id, id, kind, status, category, fact_key, content, session_id, dl,
           tsv::text, importance, confidence, reinforced, valid_from, expires_at
      FROM lis.recall
     WHERE session_id IS NULL
        OR session_id = ANY (%(sessions)s)"""
_MESSAGES: Final[LiteralString] = """
    SELECT tenant_id, user_id, avatar_id, session_id, message_id, position, role, content, name, sent_at
      FROM lis.chat_messages
     WHERE session_id = ANY (%(sessions)s)"""
_LOCKS: Final[LiteralString] = """
    SELECT l.locktype, l.mode, l.classid::bigint AS high, l.objid::bigint AS low, a.application_name
      FROM pg_locks AS l
      LEFT JOIN pg_stat_activity AS a USING (pid)
     WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND l.pid <> pg_backend_pid()"""
_CONNECTIONS: Final[LiteralString] = """
    SELECT pid, state, left(query, 200) AS query
      FROM pg_stat_activity
     WHERE datname = current_database()
       AND pid <> pg_backend_pid()"""
_DRAINED_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Rows by the name of what they are of, records by topic; topics are named without their prefix."""

    rows: Mapping[str, Sequence[Row]]
    records: Mapping[str, Sequence[Read]]
    memory: Mapping[str, Sequence[Row]]
    prefix: str

    def topic(self, name: str) -> str:
        """Return the full name of a topic."""
        return f"{self.prefix}{name}"

    def save(self, folder: Path) -> None:
        """Write everything as JSON, one file a table and a topic."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in {**self.rows, **self.memory}.items():
            _write(folder / f"table-{name.replace(' ', '-')}.jsonl", [dict(row) for row in rows])
        for name, records in self.records.items():
            _write(folder / f"topic-{name}.jsonl", [_readable(record) for record in records])


async def drained(scene: Scene, tables: Tables, sessions: int, *, within: float) -> list[str]:
    """Wait until everything has ended and left; say what did not."""
    topics = scene.topics
    read = [topics.ended, topics.messages, topics.replay, *(topics.jobs(lane) for lane in LANES)]

    async def is_committed() -> bool:
        return await lag(scene.kafka, read) == 0

    try:
        await tables.settled(sessions, within=within)
        await until(is_committed, within=_DRAINED_S, what="every offset is at the end of its log", every=0.5)
        # What was read last may have left a dead letter.
        await tables.settled(sessions, within=within)
    except AssertionError as error:
        return [f"not drained: {error}"]
    return []


async def remembered(tables: Tables, sessions: Collection[UUID]) -> Mapping[str, Sequence[Row]]:
    """Return everything that two playings of ``sessions`` must agree in."""
    params = {"sessions": list(sessions)}
    return {
        **await tables.memory(),
        "recallable rows": await tables.rows(_RECALL, params),
        "messages": await tables.rows(_MESSAGES, params),
    }


async def snapshot(scene: Scene, tables: Tables, sessions: Collection[UUID]) -> Snapshot:
    """Read tables and topics; ``sessions`` are those whose memory is looked at."""
    rows = {name: await tables.rows(query) for name, query in _QUERIES.items()}
    names = [topic.removeprefix(scene.topics.prefix) for topic in _looked_at(scene)]
    records = await asyncio.gather(*(read_all(scene.kafka, topic) for topic in _looked_at(scene)))
    return Snapshot(
        rows=rows,
        records=dict(zip(names, records, strict=True)),
        memory=await remembered(tables, sessions),
        prefix=scene.topics.prefix,
    )


async def left_behind(tables: Tables) -> list[str]:
    """Say which locks and connections are still there when every process has ended."""

    # A server notices a client that is gone when it next looks.
    async def nobody() -> bool:
        return not await tables.rows(_CONNECTIONS)

    try:
        await until(nobody, within=5.0, what="no connection is left", every=0.1)
    except AssertionError:
        found = await tables.rows(_CONNECTIONS)
        return [f"{len(found)} connections are left: {found[:3]}"]
    locks = await tables.rows(_LOCKS)
    return [f"{len(locks)} locks are left: {locks[:3]}"] if locks else []


def _looked_at(scene: Scene) -> Collection[str]:
    topics = scene.topics
    lanes = (topics.jobs(lane) for lane in LANES)
    return (topics.ended, topics.replay, *lanes, topics.events, topics.facts, topics.dead_letters)


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows))


def _readable(record: Read) -> Mapping[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": {name: _text(value) for name, value in record.headers},
    }


def _text(value: bytes | None) -> str | None:
    return value.decode(errors="replace") if value is not None else None
