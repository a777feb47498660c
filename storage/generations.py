"""Generations beside the one that serves: compared, promoted and removed (docs/architecture/replay.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.generations import (
    PROMOTION,
    Chosen,
    Generation,
    NotPromotableError,
    PromotionReading,
    Standing,
)
from domain.memory.assertions import Scope
from domain.memory.reconcile import reconcile
from domain.memory.timeline import Rules
from domain.ports import RecallTokenizer
from domain.replays import ReplayMode, ReplayStatus
from storage.commit_read_sql import (
    AS_PROJECTION,
    HOLD_FACTS,
    LOCK_SCOPES,
    READ_ASSERTIONS_WITH_LABEL,
    READ_FACTS,
    READ_REST,
)
from storage.commit_reads import Reading, Touched
from storage.commit_writes import Writes, lock_key, owner_of
from storage.evidence_rows import assertion_from_row
from storage.fact_rows import fact_from_row
from storage.generation_sql import (
    AT_ONE_MOMENT,
    COUNT_SCOPES,
    COUNT_SESSIONS,
    DROP_ASSERTIONS_OF,
    DROP_JOBS_OF,
    DROP_WINDOWS_OF,
    FIND_GENERATION,
    HOLD_READY,
    HOLD_REPLACED,
    HOLD_UNSERVED,
    IS_SERVING,
    LIST_SCOPES,
    MARK,
    PROMOTE_SESSIONS,
    READ_READY,
    SLOTS_OF_SESSIONS,
)
from storage.json_text import rows_text
from storage.outbox_rows import outbox_rows
from storage.outgoing import Encode
from storage.pool import ContendedError, Database

Found = Mapping[str, Any]

_MOST_CONTENDED: Final = 5
_STEP: Final = 100
_NAMED: Final = ("open", "dead", "changed")
_FIRST: Final = {"after_tenant": "", "after_session": UUID(int=0)}


class PostgresGenerations:
    """``domain.generations.GenerationStore``, and what removes a generation."""

    def __init__(
        self, database: Database, *, encode: Encode, tokenizer: RecallTokenizer, rules: Rules
    ) -> None:
        self._database = database
        self._encode = encode
        self._tokenizer = tokenizer
        self._rules = rules

    async def find(self, replay_id: str) -> Generation | None:
        """Return the generation of a replay."""
        rows = await self._rows(FIND_GENERATION, {"replay_id": replay_id})
        if not rows:
            return None
        return Generation(
            replay_id=rows[0]["replay_id"],
            label=rows[0]["generation"],
            mode=ReplayMode(rows[0]["mode"]),
            status=ReplayStatus(rows[0]["status"]),
        )

    async def standing(self, label: str, chosen: Chosen) -> Standing:
        """Count the sessions of ``label``."""
        row = (await self._rows(COUNT_SESSIONS, _chosen(label, chosen)))[0]
        named = {name: tuple(row[f"named_{name}"]) for name in _NAMED if row[f"named_{name}"]}
        counts = {name: row[name] for name in ("ready", "serving", "open", "dead", "changed", "empty")}
        return Standing(**counts, named=named)

    async def scopes(self, label: str, chosen: Chosen, *, after: Scope | None, most: int) -> Sequence[Scope]:
        """Return scopes that have sessions to promote, in a stable order, beginning after ``after``."""
        params = {
            **_chosen(label, chosen),
            "after_user": UUID(after.user) if after is not None else None,
            "after_tenant": after.tenant if after is not None else None,
            "after_avatar": UUID(after.avatar) if after is not None else None,
            "most": most,
        }
        return [
            Scope(tenant=row["tenant_id"], user=str(row["user_id"]), avatar=str(row["avatar_id"]))
            for row in await self._rows(LIST_SCOPES, params)
        ]

    async def count_scopes(self, label: str) -> int:
        """Count the scopes that have sessions to promote."""
        count: int = (await self._rows(COUNT_SCOPES, _chosen(label, Chosen())))[0]["count"]
        return count

    async def read(self, label: str, scope: Scope) -> PromotionReading:
        """Read a scope as it is at one moment, without holding anything back."""
        async with self._database.transaction() as conn:
            await conn.execute(AT_ONE_MOMENT)
            await conn.execute(AS_PROJECTION)
            ready = await _fetched(conn, READ_READY, {**owner_params(scope), "generation": label})
            reading = await _read(conn, READ_FACTS, label, scope, ready)
        return _promotion(reading, label, ready)

    async def promote(self, label: str, scope: Scope) -> int:
        """Serve ``label`` in a scope, with one event for each changed fact; return how many changed."""
        for _ in range(_MOST_CONTENDED):
            try:
                return await self._promote(label, scope)
            except ContendedError:
                continue
        return await self._promote(label, scope)

    async def mark(self, replay_id: str, *, status: ReplayStatus) -> None:
        """Note where the replay stands."""
        async with self._database.connection() as conn:
            await conn.execute(MARK, {"replay_id": replay_id, "status": status.value})

    async def discard(self, label: str) -> int:
        """Remove what was done under ``label``, in steps that can be interrupted; count the sessions.

        Raises:
            NotPromotableError: some of it serves; nothing was removed.
        """
        if (await self._rows(IS_SERVING, {"generation": label}))[0]["exists"]:
            raise NotPromotableError(f"{label} serves: only what it took the place of can be removed")
        gone = 0
        while removed := await self._remove(HOLD_UNSERVED, {"generation": label}, DROP_JOBS_OF):
            gone += len(removed)
        return gone

    async def drop_replaced(self, label: str) -> int:
        """Remove the evidence that ``label`` took the place of; the jobs stay."""
        gone, after = 0, dict[str, Any](_FIRST)
        while removed := await self._remove(HOLD_REPLACED, {"generation": label, **after}, None):
            gone += len(removed)
            after = {"after_tenant": removed[-1]["tenant_id"], "after_session": removed[-1]["session_id"]}
        return gone

    async def _promote(self, label: str, scope: Scope) -> int:
        owner = owner_params(scope)
        async with self._database.transaction() as conn:
            await conn.execute(LOCK_SCOPES, {"keys": [lock_key(scope)]})
            await conn.execute(AS_PROJECTION)
            ready = await _fetched(conn, HOLD_READY, {**owner, "generation": label})
            if not ready:
                return 0
            reading = await _read(conn, HOLD_FACTS, label, scope, ready)
            projected = reconcile(_promotion(reading, label, ready).after, PROMOTION, self._rules)
            writes = Writes(tokenizer=self._tokenizer)
            events = writes.add_projected(scope, projected, reading.now, ready[-1]["language"])
            writes.records += outbox_rows(
                events, self._encode, tenant_id=scope.tenant, user_id=owner["user_id"]
            )
            await writes.send(conn)
            await conn.execute(
                PROMOTE_SESSIONS,
                {
                    **owner,
                    "generation": label,
                    "sessions": [row["session_id"] for row in ready],
                    "replaced": [row["serving_generation"] for row in ready],
                },
            )
        return len(projected.versions)

    async def _remove(
        self, hold: LiteralString, params: Mapping[str, Any], jobs: LiteralString | None
    ) -> Sequence[Found]:
        async with self._database.transaction() as conn:
            held = await _fetched(conn, hold, {**params, "most": _STEP})
            if held:
                given = {"sessions": rows_text([dict(row) for row in held])}
                for statement in (DROP_ASSERTIONS_OF, DROP_WINDOWS_OF, jobs):
                    if statement is not None:
                        await conn.execute(statement, given)
        return held

    async def _rows(self, statement: LiteralString, params: Mapping[str, Any]) -> Sequence[Found]:
        async with self._database.connection() as conn:
            return await _fetched(conn, statement, params)


def owner_params(scope: Scope) -> Mapping[str, Any]:
    """Return the parameters that name ``scope``."""
    return {**owner_of(scope), "user_id": UUID(scope.user), "avatar_id": UUID(scope.avatar)}


async def _fetched(
    conn: AsyncConnection, statement: LiteralString, params: Mapping[str, Any], *, binary: bool = False
) -> Sequence[Found]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, params, binary=binary)
        return await cursor.fetchall()


async def _read(
    conn: AsyncConnection, facts: LiteralString, label: str, scope: Scope, ready: Sequence[Found]
) -> Reading:
    """Read the slots of the sessions that are ``ready``: the facts first, as a commit does."""
    sessions = [row["session_id"] for row in ready]
    slots = await _fetched(conn, SLOTS_OF_SESSIONS, {**owner_params(scope), "sessions": sessions})
    touched = Touched(scope=scope, slots=tuple(row["slot"] for row in slots), generation=label)
    params = {**touched.params, "sessions": sessions}
    found = [fact_from_row(row) for row in await _fetched(conn, facts, params, binary=True)]
    return Reading(
        touched=touched,
        facts={fact.fact_id: fact for fact in found},
        said=await _fetched(conn, READ_ASSERTIONS_WITH_LABEL, params, binary=True),
        rest=(await _fetched(conn, READ_REST, params))[0],
    )


def _promotion(reading: Reading, label: str, ready: Sequence[Found]) -> PromotionReading:
    """Tell what serves from what would: in the sessions that are ``ready``, the label alone."""
    switched = {str(row["session_id"]) for row in ready}
    scope = reading.touched.scope
    said = [assertion_from_row(scope, row) for row in reading.said]
    of_label = {one for one in said if one.session_id in switched and one.generation == label}
    return PromotionReading(
        sessions=tuple(row["session_id"] for row in ready),
        before=reading.of([one for one in said if one not in of_label]),
        after=reading.of([one for one in said if one.session_id not in switched or one in of_label]),
    )


def _chosen(label: str, chosen: Chosen) -> Mapping[str, Any]:
    return {"generation": label, "tenant_id": chosen.tenant_id, "user_id": chosen.user_id}
