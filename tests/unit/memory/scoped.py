"""The tables of one scope, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from domain.events import FactChanged, MemoryNoticed
from domain.memory.assertions import (
    Assertion,
    Retraction,
)
from domain.memory.facts import FactRow
from domain.memory.fold import Opinion, affected
from domain.memory.projection import Contradiction
from domain.memory.reconcile import (
    ClarificationRow,
    Occasion,
    PendingRow,
    Projected,
    Stored,
    reconcile,
)
from domain.memory.slots import Slot, slot_from_text
from tests.unit.memory.builders import SCOPE
from tests.unit.memory.histories import Taken, Told

FOLD = Occasion()


@dataclass(slots=True)
class Scoped:
    """The tables of one scope, written the way storage writes them: affected slots only."""

    told: dict[str, list[Assertion]] = field(default_factory=dict)
    opinions: list[Opinion] = field(default_factory=list)
    commands: list[Retraction] = field(default_factory=list)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    pending: dict[UUID, PendingRow] = field(default_factory=dict)
    clarifications: dict[UUID, ClarificationRow] = field(default_factory=dict)
    contradictions: set[Contradiction] = field(default_factory=set)
    counter: int = 0
    events: list[FactChanged | MemoryNoticed] = field(default_factory=list)

    def commit(self, session: str, said_now: Sequence[Assertion]) -> Projected:
        before = {one.slot for one in self.told.get(session, ())}
        self.told[session] = list(said_now)
        return self.fold(before | {one.slot for one in said_now})

    def fold(self, touched: set[Slot]) -> Projected:
        said = {one.slot for rows in self.told.values() for one in rows}
        slots = affected(touched, (touched | said, self.opinions))
        facts = {key: row for key, row in self.facts.items() if slot_from_text(row.slot) in slots}
        everything = [one for rows in self.told.values() for one in rows]
        projected = reconcile(
            Stored(
                scope=SCOPE,
                assertions=[one for one in everything if one.slot in slots],
                opinions=self.opinions,
                retractions=self.commands,
                facts=facts,
                pending={k: row for k, row in self.pending.items() if slot_from_text(row.slot) in slots},
                clarifications={
                    k: row for k, row in self.clarifications.items() if slot_from_text(row.slot) in slots
                },
                contradictions=frozenset(one for one in self.contradictions if one.older in facts),
                event_counter=self.counter,
            ),
            FOLD,
        )
        self._write(projected)
        return projected

    def _write(self, projected: Projected) -> None:
        for fact_id in projected.facts_removed:
            del self.facts[fact_id]
        for candidate_id in projected.pending_removed:
            del self.pending[candidate_id]
        for clarification_id in projected.clarifications_removed:
            del self.clarifications[clarification_id]
        self.contradictions -= set(projected.contradictions_removed)
        self.facts |= {row.fact_id: row for row in projected.facts}
        self.pending |= {row.candidate_id: row for row in projected.pending}
        self.clarifications |= {row.clarification_id: row for row in projected.clarifications}
        self.contradictions |= set(projected.contradictions)
        self.counter = projected.event_counter
        self.events += projected.events


def sessions_of(told: Told) -> dict[str, Told]:
    return {name: [one for one in told if one.session_id == name] for name in {o.session_id for o in told}}


def all_at_once(told: Told, opinions: Sequence[Opinion], commands: Taken) -> Scoped:
    scoped = Scoped(opinions=list(opinions), commands=list(commands))
    scoped.told = dict(sessions_of(told))
    scoped.fold({one.slot for one in told})
    return scoped
