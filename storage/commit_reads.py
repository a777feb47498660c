"""What is read under the lock, as the fold wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import dict_row

from domain.memory.assertions import Assertion, Scope
from domain.memory.evidence import claims_by_id
from domain.memory.facts import FactRow
from domain.memory.projection import Contradiction
from domain.memory.reconcile import ClarificationRow, PendingRow, Stored
from domain.memory.slots import slot_text
from domain.memory.stances import Mode
from storage.commit_read_sql import (
    HOLD_FACTS,
    HOLD_FACTS_AGAIN,
    READ_ASSERTIONS,
    READ_ASSERTIONS_AGAIN,
    READ_REST,
    READ_REST_AGAIN,
)
from storage.evidence_rows import (
    assertion_from_row,
    judgements_from_rows,
    links_from_rows,
    retractions_from_rows,
)
from storage.fact_rows import fact_from_row

Found = Mapping[str, Any]
Cursor = AsyncCursor[dict[str, Any]]

_FIRST: Final = (HOLD_FACTS, READ_ASSERTIONS, READ_REST)
_AGAIN: Final = (HOLD_FACTS_AGAIN, READ_ASSERTIONS_AGAIN, READ_REST_AGAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a commit is about to change in one scope.

    ``again`` says that the session may have assertions of this generation already, or of any where it is
    None; ``assertions`` take their place.
    """

    scope: Scope
    slots: tuple[str, ...]
    session_id: str | None = None
    generation: str | None = None
    again: bool = False
    assertions: tuple[Assertion, ...] = ()

    @property
    def params(self) -> Mapping[str, object]:
        """The parameters of the statements that read this scope."""
        return {
            "tenant_id": self.scope.tenant,
            "user_id": UUID(self.scope.user),
            "avatar_id": UUID(self.scope.avatar),
            "slots": sorted({*self.slots, *(slot_text(one.slot) for one in self.assertions)}),
            "session_id": UUID(self.session_id) if self.session_id is not None else None,
            "generation": self.generation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One scope as it was read, and the time of the transaction."""

    touched: Touched
    facts: Mapping[UUID, FactRow]
    said: Sequence[Found]
    rest: Found

    @property
    def now(self) -> datetime:
        """The time at which the transaction began."""
        now: datetime = self.rest["now"]
        return now

    def stored(self) -> Stored:
        """Return what the fold is given, whatever served of the session replaced by the new assertions."""
        scope, mine = self.touched.scope, self.touched.session_id
        read = [assertion_from_row(scope, row) for row in self.said if row["session_id"] != mine]
        return self.of([*read, *self.touched.assertions])

    def of(self, assertions: Sequence[Assertion]) -> Stored:
        """Return what the fold is given when ``assertions`` are the evidence."""
        claims = claims_by_id(assertions)
        return Stored(
            scope=self.touched.scope,
            assertions=assertions,
            opinions=[
                *judgements_from_rows(self.rest["judgements"] or (), claims),
                *links_from_rows(self.rest["links"] or ()),
            ],
            retractions=retractions_from_rows(self.rest["retractions"] or ()),
            facts=self.facts,
            pending={one.candidate_id: one for one in map(_pending, self.rest["pending"] or ())},
            clarifications={
                one.clarification_id: one for one in map(_clarification, self.rest["clarifications"] or ())
            },
            contradictions=frozenset(
                one for one in map(_note, self.rest["notes"] or ()) if one.older in self.facts
            ),
            event_counter=self.rest["events"] or 0,
        )


class ScopeReader:
    """Sends the reading statements into a pipeline, and collects their results afterwards.

    The facts are held first: what is read after them is not older than a delete of the gateway before them.
    """

    def __init__(self, conn: AsyncConnection, touched: Sequence[Touched]) -> None:
        self._conn = conn
        self._touched = touched
        self._facts: list[Cursor] = []
        self._said: list[Cursor] = []
        self._rest: list[Cursor] = []

    async def send(self) -> None:
        """Send the statements."""
        for one in self._touched:
            params = one.params
            facts, said, rest = _AGAIN if one.again else _FIRST
            self._facts.append(await self._sent(facts, params, binary=True))
            self._said.append(await self._sent(said, params, binary=True))
            self._rest.append(await self._sent(rest, params, binary=False))

    async def collect(self) -> list[Reading]:
        """Return what they found, one reading a scope."""
        readings: list[Reading] = []
        for one, facts, said, rest in zip(self._touched, self._facts, self._said, self._rest, strict=True):
            rows = [fact_from_row(row) for row in await facts.fetchall()]
            readings.append(
                Reading(
                    touched=one,
                    facts={fact.fact_id: fact for fact in rows},
                    said=await said.fetchall(),
                    rest=(await rest.fetchall())[0],
                )
            )
        return readings

    async def _sent(self, statement: LiteralString, params: Mapping[str, object], *, binary: bool) -> Cursor:
        cursor = self._conn.cursor(row_factory=dict_row)
        await cursor.execute(statement, params, binary=binary)
        return cursor


def _pending(row: Found) -> PendingRow:
    return PendingRow(
        candidate_id=UUID(row["candidate_id"]),
        slot=row["slot"],
        mode=Mode(row["mode"]),
        value=row["value"],
        confidence=row["confidence"],
        sessions=row["sessions"],
    )


def _clarification(row: Found) -> ClarificationRow:
    return ClarificationRow(
        clarification_id=UUID(row["clarification_id"]),
        slot=row["slot"],
        current=UUID(row["current_fact"]),
        other=UUID(row["other_fact"]),
    )


def _note(row: Found) -> Contradiction:
    return Contradiction(older=UUID(row["older_fact"]), newer=UUID(row["newer_fact"]), note=row["note"])
