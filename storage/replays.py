"""Replays as they are kept, and which stored sessions they mean."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg.rows import dict_row

from domain.errors import ConflictError
from domain.replays import (
    Position,
    Replay,
    ReplayMode,
    ReplayProgress,
    ReplayStatus,
    SessionRef,
    Standing,
    StoredSession,
    StoredSessions,
    TopicRecords,
)
from storage.json_text import rows_text
from storage.pool import Database
from storage.replay_sql import (
    ADD_REPLAY,
    ADVANCE,
    BEAT,
    BEGIN_FEEDING,
    COUNT_JOBS,
    COUNT_MEANT,
    END_FEEDING,
    GET_REPLAY,
    LIST_REPLAYS,
    MOVE_REPLAY,
    NEXT_MEANT,
    READ_STANDING,
)

FEEDER_LIVES: Final = timedelta(seconds=15)


class PostgresReplays:
    """``domain.replays.ReplayStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, replay: Replay) -> None:
        """Keep a new replay.

        Raises:
            ConflictError: its id is taken.
        """
        params = {
            "replay_id": replay.replay_id,
            "generation": replay.generation,
            "mode": replay.mode.value,
            "status": replay.status.value,
            "source": orjson.dumps(_source_row(replay.source)).decode(),
            "rate": replay.rate,
            "total": replay.total,
            "started_at": replay.started_at,
        }
        if await self._row(ADD_REPLAY, params) is None:
            raise ConflictError(f"there is a replay {replay.replay_id} already")

    async def get(self, replay_id: str) -> Replay | None:
        """Return the replay with this id."""
        row = await self._row(GET_REPLAY, {"replay_id": replay_id})
        return _replay(row) if row is not None else None

    async def newest(self, *, most: int) -> Sequence[Replay]:
        """Return replays, newest first."""
        return [_replay(row) for row in await self._rows(LIST_REPLAYS, {"most": most})]

    async def move(
        self, replay_id: str, *, start: Collection[ReplayStatus], to: ReplayStatus
    ) -> ReplayStatus | None:
        """Change the status if it is one of ``start``; return what it is then, None without such a replay."""
        params = {"replay_id": replay_id, "start": [one.value for one in start], "to": to.value}
        row = await self._row(MOVE_REPLAY, params)
        return ReplayStatus(row["status"]) if row is not None else None

    async def begin_feeding(self, replay_id: str, feeder: UUID) -> bool:
        """Make ``feeder`` the one who feeds; False while another one has shown itself lately."""
        params = {"replay_id": replay_id, "feeder": feeder, "alive": FEEDER_LIVES}
        return await self._row(BEGIN_FEEDING, params) is not None

    async def beat(self, replay_id: str, feeder: UUID) -> ReplayStatus | None:
        """Show that ``feeder`` lives; return the status, or None when somebody else feeds now."""
        row = await self._row(BEAT, {"replay_id": replay_id, "feeder": feeder})
        return ReplayStatus(row["status"]) if row is not None else None

    async def end_feeding(self, replay_id: str, feeder: UUID) -> None:
        """Let somebody else feed."""
        async with self._database.connection() as conn:
            await conn.execute(END_FEEDING, {"replay_id": replay_id, "feeder": feeder})

    async def next_sessions(self, replay: Replay, *, most: int) -> Sequence[StoredSession]:
        """Return the next stored sessions behind the position for which the mode has something to do."""
        if not isinstance(replay.source, StoredSessions):
            return ()
        after = replay.position or {}
        params = {
            **_meant(replay.mode, replay.generation, replay.source),
            "after_end": after.get("ended_at"),
            "after_tenant": after.get("tenant_id"),
            "after_session": after.get("session_id"),
            "most": most,
        }
        return [StoredSession(**row) for row in await self._rows(NEXT_MEANT, params)]

    async def count_sessions(self, mode: ReplayMode, label: str, source: StoredSessions) -> int:
        """Count the stored sessions of ``source`` for which the mode has something to do."""
        row = await self._row(COUNT_MEANT, _meant(mode, label, source))
        return int(row["count"]) if row is not None else 0

    async def advance(
        self, replay_id: str, *, position: Position, published: int, skipped: Mapping[str, int]
    ) -> None:
        """Note that what lies before ``position`` was published or skipped; the counts are added."""
        params = {
            "replay_id": replay_id,
            "position": orjson.dumps(position).decode(),
            "published": published,
            "skipped": orjson.dumps(skipped).decode(),
        }
        async with self._database.connection() as conn:
            await conn.execute(ADVANCE, params)

    async def standing(self, replay: Replay, sessions: Sequence[SessionRef]) -> Sequence[Standing]:
        """Say what became of ``sessions`` in the replay's generation, one answer each."""
        rows = [
            {"place": place, "tenant_id": tenant_id, "session_id": session_id}
            for place, (tenant_id, session_id) in enumerate(sessions)
        ]
        params = {"sessions": rows_text(rows), "label": _label(replay.mode, replay.generation)}
        return [Standing(row["standing"]) for row in await self._rows(READ_STANDING, params)]

    async def progress(self, replay_id: str) -> ReplayProgress:
        """Count the jobs that the replay ordered."""
        rows = await self._rows(COUNT_JOBS, {"replay_id": replay_id})
        return ReplayProgress(jobs={row["status"]: row["jobs"] for row in rows})

    async def _rows(self, statement: Any, params: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, params)
            return await cursor.fetchall()

    async def _row(self, statement: Any, params: Mapping[str, object]) -> Mapping[str, Any] | None:
        return next(iter(await self._rows(statement, params)), None)


def _label(mode: ReplayMode, generation: str) -> str | None:
    return None if mode is ReplayMode.FILL else generation


def _meant(mode: ReplayMode, generation: str, source: StoredSessions) -> dict[str, object]:
    return {
        "until": source.until,
        "since": source.since,
        "tenant_id": source.tenant_id,
        "user_id": source.user_id,
        "label": _label(mode, generation),
    }


def _source_row(source: StoredSessions | TopicRecords) -> Mapping[str, Any]:
    if isinstance(source, StoredSessions):
        return {
            "kind": "sessions",
            "until": source.until,
            "since": source.since,
            "tenant_id": source.tenant_id,
            "user_id": source.user_id,
        }
    return {
        "kind": "topic",
        "topic": source.topic,
        "starts": dict(source.starts),
        "ends": dict(source.ends),
        "tenant_id": source.tenant_id,
    }


def _source(row: Mapping[str, Any]) -> StoredSessions | TopicRecords:
    if row["kind"] == "topic":
        return TopicRecords(
            topic=row["topic"], starts=row["starts"], ends=row["ends"], tenant_id=row["tenant_id"]
        )
    since, user_id = row["since"], row["user_id"]
    return StoredSessions(
        until=datetime.fromisoformat(row["until"]),
        since=datetime.fromisoformat(since) if since is not None else None,
        tenant_id=row["tenant_id"],
        user_id=UUID(user_id) if user_id is not None else None,
    )


def _replay(row: Mapping[str, Any]) -> Replay:
    return Replay(
        **{
            **row,
            "mode": ReplayMode(row["mode"]),
            "status": ReplayStatus(row["status"]),
            "source": _source(row["source"]),
            "total": row["total"] or 0,
        }
    )
