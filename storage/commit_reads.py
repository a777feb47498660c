"""What is read under the lock, as the fold wants it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.memory.assertions import Assertion, Scope
from domain.memory.evidence import claims_by_id
from domain.memory.facts import FactRow
from domain.memory.projection import Contradiction
from domain.memory.reconcile import ClarificationRow, PendingRow, Stored
from domain.memory.slots import slot_text
from domain.memory.stances import Mode
from storage.commit_read_sql import HOLD_FACTS, READ_ASSERTIONS, READ_REST
from storage.evidence_rows import (
    assertion_from_row,
    judgements_from_rows,
    links_from_rows,
    retractions_from_rows,
)
from storage.fact_rows import fact_from_row
from storage.json_text import Row, rows_text

Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a commit is about to change in one scope.

    ``again`` says that the session may have assertions of this generation already; ``assertions`` take
    their place.
    """

    scope: Scope
    slots: tuple[str, ...]
    session_id: str | None = None
    generation: str | None = None
    again: bool = False
    assertions: tuple[Assertion, ...] = ()

    def row(self, number: int) -> Row:
        """Return the row that the statements read; ``number`` comes back with what they find."""
        return {
            "n": number,
            "tenant_id": self.scope.tenant,
            "user_id": self.scope.user,
            "avatar_id": self.scope.avatar,
            "session_id": self.session_id,
            "generation": self.generation,
            "again": self.again,
            "slots": sorted({*self.slots, *(slot_text(one.slot) for one in self.assertions)}),
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

    def stored(self, *, is_serving: bool) -> Stored:
        """Return what the fold is given, the session's old assertions replaced by the new ones."""
        scope, mine = self.touched.scope, (self.touched.session_id, self.touched.generation)
        read = [
            assertion_from_row(scope, row)
            for row in self.said
            if (row["session_id"], row["generation"]) != mine
        ]
        assertions = [*read, *self.touched.assertions] if is_serving else read
        claims = claims_by_id(assertions)
        return Stored(
            scope=scope,
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
        self._touched = touched
        self._facts = conn.cursor(row_factory=dict_row)
        self._said = conn.cursor(row_factory=dict_row)
        self._rest = conn.cursor(row_factory=dict_row)

    async def send(self) -> None:
        """Send the statements."""
        scopes = {"scopes": rows_text([one.row(number) for number, one in enumerate(self._touched)])}
        await self._facts.execute(HOLD_FACTS, scopes, binary=True)
        await self._said.execute(READ_ASSERTIONS, scopes, binary=True)
        await self._rest.execute(READ_REST, scopes)

    async def collect(self) -> list[Reading]:
        """Return what they found, one reading a scope."""
        facts: dict[int, dict[UUID, FactRow]] = defaultdict(dict)
        for row in await self._facts.fetchall():
            fact = fact_from_row(row)
            facts[row["n"]][fact.fact_id] = fact
        said: dict[int, list[Found]] = defaultdict(list)
        for row in await self._said.fetchall():
            said[row["n"]].append(row)
        rest = {row["n"]: row for row in await self._rest.fetchall()}
        return [
            Reading(touched=one, facts=facts[number], said=said[number], rest=rest[number])
            for number, one in enumerate(self._touched)
        ]


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
