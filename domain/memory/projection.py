"""From lines to what is remembered: facts, pending candidates, open questions and notes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from domain.memory.assertions import NAMESPACE, Assertion, Mode, Scope, Stance, claim_id
from domain.memory.relations import Joint, Relations
from domain.memory.slots import Slot
from domain.memory.spells import Cause, Line, Spell
from domain.memory.timeline import Rules
from domain.memory.values import normalise
from domain.memory.withdrawals import Reason


class Status(StrEnum):
    """What a fact is; ``EXPIRED`` is only ever an answer about a time, never a result of the fold."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Interval:
    """A period in which a fact held; an unknown start and an open end are None."""

    start: datetime | None
    end: datetime | None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of memory: what is or was believed, since when, and on what evidence.

    ``source`` is the statement that the shown value, or the first part of a merged text, comes from.
    """

    fact_id: UUID
    slot: Slot
    mode: Mode
    category: str
    value: str
    norm: str
    status: Status
    intervals: tuple[Interval, ...]
    confidence: float
    importance: float
    reinforced: int
    first_said: datetime
    last_said: datetime
    expires_at: datetime | None
    evidence: tuple[UUID, ...]
    names: frozenset[UUID]
    source: UUID
    superseded_by: UUID | None = None
    merged_into: UUID | None = None

    def status_at(self, now: datetime) -> Status:
        """Return the status at ``now``, with expiry."""
        over = self.expires_at is not None and self.expires_at <= now
        return Status.EXPIRED if over and self.status is Status.ACTIVE else self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A claim that was only said weakly, and not often enough."""

    candidate_id: UUID
    slot: Slot
    mode: Mode
    value: str
    confidence: float
    sessions: int
    evidence: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarification:
    """A question to the user: which of two facts holds."""

    clarification_id: UUID
    slot: Slot
    current: UUID
    other: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A note that a fact was ended by a fact of another slot."""

    older: UUID
    newer: UUID
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The memory of a scope."""

    facts: Mapping[UUID, Fact] = field(default_factory=dict)
    pending: Mapping[UUID, Candidate] = field(default_factory=dict)
    clarifications: frozenset[Clarification] = frozenset()
    contradictions: frozenset[Contradiction] = frozenset()
    unused: Mapping[UUID, Reason] = field(default_factory=dict)
    slot_of: Mapping[UUID, Slot] = field(default_factory=dict)

    def active(self, now: datetime | None = None) -> list[Fact]:
        """Return the facts that hold, at ``now`` when it is given."""
        return [
            fact
            for fact in self.facts.values()
            if (fact.status if now is None else fact.status_at(now)) is Status.ACTIVE
        ]


def why(state: State, fact_id: UUID) -> list[UUID]:
    """Return the statements behind a fact, with those of the facts that are shown as part of it."""
    parts = [fact for fact in state.facts.values() if fact_id in (fact.fact_id, fact.merged_into)]
    return [one for fact in parts for one in fact.evidence]


def meaning(state: State) -> State:
    """Leave out the rows of evidence, so that two generations can be compared."""
    return replace(
        state,
        facts={key: replace(fact, evidence=(), source=UUID(int=0)) for key, fact in state.facts.items()},
        pending={key: replace(one, evidence=()) for key, one in state.pending.items()},
        unused={},
        slot_of={},
    )


class Projection:
    """Turns the lines of one component into a state."""

    def __init__(self, scope: Scope, relations: Relations, lines: Sequence[Line], rules: Rules) -> None:
        self._scope = scope
        self._relations = relations
        self._rules = rules
        self._lines = lines
        self._ids = {line: self._name(line) for line in lines}

    def state(self, gone: Mapping[Assertion, Reason]) -> State:
        """Return the state of the component; ``gone`` are the statements that took no part."""
        told = [line for line in self._lines if line.spells]
        weak = [line for line in self._lines if not line.spells]
        facts = self._joined({line: self._fact(line) for line in told})
        visible = {line: [s for s in line.weak if not line.hides(s)] for line in weak}
        unused = {one.assertion_id: why for one, why in gone.items()}
        unused |= {s.assertion_id: Reason.FORGOTTEN for line in weak for s in line.weak if line.hides(s)}
        everyone = [*gone, *(s for line in self._lines for s in _evidence(line))]
        pending = [self._candidate(line, said) for line, said in visible.items() if said]
        return State(
            facts={fact.fact_id: fact for fact in facts},
            pending={one.candidate_id: one for one in pending},
            clarifications=frozenset(self._clarifications(told)),
            contradictions=frozenset(self._contradictions(told)),
            unused=unused,
            slot_of={one.assertion_id: one.slot for one in everyone if one.assertion_id in unused},
        )

    def _name(self, line: Line) -> UUID:
        """Name a line after the first of its wordings to be said, or after the row it was imported from."""
        evidence = _evidence(line)
        imported = next((one.known_as for one in evidence if one.known_as is not None), None)
        return imported or claim_id(self._scope, evidence[0].claim)

    def _fact(self, line: Line) -> Fact:
        evidence = _evidence(line)
        seen = [one for one in evidence if not line.hides(one)]
        spells = [spell for spell in line.spells if not all(map(line.hides, spell.evidence))]
        shown, last = seen or evidence, (spells or line.spells)[-1]
        now = [one for one in last.evidence if seen and not line.hides(one)] or shown
        return Fact(
            fact_id=self._ids[line],
            slot=evidence[0].slot,
            mode=line.key.mode,
            category=now[-1].category,
            value=now[-1].value,
            norm=now[-1].norm,
            status=_status(line, spells),
            intervals=tuple(
                Interval(s.start, s.end, s.cause) for s in sorted(spells or line.spells, key=_since)
            ),
            confidence=max(self._rules.keep, *(one.confidence for one in shown)),
            importance=max(one.importance for one in shown),
            reinforced=len({one.session_id for one in shown}) - 1,
            first_said=shown[0].said_at,
            last_said=shown[-1].said_at,
            expires_at=self._expiry(line, now),
            evidence=tuple(one.assertion_id for one in evidence),
            names=frozenset(claim_id(self._scope, one.claim) for one in evidence),
            source=now[-1].assertion_id,
            superseded_by=self._ids.get(last.by) if last.by is not None else None,
        )

    def _expiry(self, line: Line, said: Sequence[Assertion]) -> datetime | None:
        """The last word on an end; else the longest life that any statement of the spell gave it."""
        if line.key.mode is Mode.PLANS:
            due = said[-1].expires_at or said[-1].valid_to or said[-1].valid_from
            return due + self._rules.plan_grace if due is not None else None
        if said[-1].effect is Stance.HOLDS and said[-1].valid_to is not None:
            return said[-1].valid_to
        lives = [one.expires_at for one in said if one.effect is not Stance.HELD]
        return None if None in lives else max((life for life in lives if life is not None), default=None)

    def _candidate(self, line: Line, said: Sequence[Assertion]) -> Candidate:
        return Candidate(
            candidate_id=self._ids[line],
            slot=_evidence(line)[0].slot,
            mode=line.key.mode,
            value=said[-1].value,
            confidence=max(one.confidence for one in said),
            sessions=len({one.session_id for one in said}),
            evidence=tuple(one.assertion_id for one in said),
        )

    def _joined(self, facts: Mapping[Line, Fact]) -> Iterable[Fact]:
        """Show running values that were judged to belong together as one text, while they all run."""
        shown = dict(facts)
        running = [
            line for line, fact in facts.items() if fact.status is Status.ACTIVE and fact.mode is Mode.HOLDS
        ]
        for family in {line.key.family for line in running}:
            joints = self._relations.joints.get(family, ())
            here = [line for line in running if line.key.family == family] if joints else []
            for together, text in _groups(here, joints):
                shown |= _as_one({line: facts[line] for line in together}, text)
        return shown.values()

    def _clarifications(self, told: Sequence[Line]) -> Iterable[Clarification]:
        for line in told:
            spell = line.spell
            if spell is not None and spell.disputes is not None and spell.disputes in self._ids:
                current, other = self._ids[line], self._ids[spell.disputes]
                name = "\x1f".join(("clarification", *sorted((str(current), str(other)))))
                yield Clarification(
                    clarification_id=uuid5(NAMESPACE, name),
                    slot=_evidence(line)[0].slot,
                    current=current,
                    other=other,
                )

    def _contradictions(self, told: Sequence[Line]) -> Iterable[Contradiction]:
        for line in told:
            for spell in line.spells:
                if spell.cause is Cause.CONTRADICTION and spell.by is not None:
                    note = self._relations.across[line.key][spell.by.key]
                    yield Contradiction(older=self._ids[line], newer=self._ids[spell.by], note=note)


def _evidence(line: Line) -> list[Assertion]:
    found = {*line.weak, *(one for spell in line.spells for one in spell.evidence)}
    return sorted(found, key=lambda one: one.order)


def _status(line: Line, visible: Sequence[Spell]) -> Status:
    if not visible:
        return Status.DELETED
    return Status.ACTIVE if line.spell is not None else Status.SUPERSEDED


def _since(spell: Spell) -> tuple[bool, float]:
    start = spell.start or spell.end
    return (spell.running, start.timestamp() if start is not None else 0.0)


Group = tuple[frozenset[str], tuple[Line, ...], str]


def _groups(lines: Sequence[Line], joints: Sequence[Joint]) -> Iterable[tuple[tuple[Line, ...], str]]:
    """Follow ``joints`` in their canonical order; each one replaces two groups by their common text."""
    groups: list[Group] = [(_wordings(line), (line,), "") for line in lines]
    moved = True
    while moved:
        moved = False
        for joint in joints:
            one = next((g for g in groups if joint.left in g[0]), None)
            other = next((g for g in groups if joint.right in g[0]), None)
            if one is not None and other is not None and one is not other:
                groups = [g for g in groups if g is not one and g is not other]
                groups.append((frozenset({normalise(joint.text)}), one[1] + other[1], joint.text))
                moved = True
                break
    return [(members, text) for _, members, text in groups if text]


def _wordings(line: Line) -> frozenset[str]:
    return frozenset(one.claim.norm for one in line.spells[-1].evidence if not line.hides(one))


def _as_one(facts: Mapping[Line, Fact], text: str) -> Mapping[Line, Fact]:
    norm = normalise(text)
    first = min(
        facts, key=lambda line: (norm not in _wordings(line), facts[line].first_said, facts[line].fact_id)
    )
    lead, ids = facts[first], {fact.fact_id for fact in facts.values()}
    joined = {
        line: replace(fact, status=Status.SUPERSEDED, merged_into=lead.fact_id)
        for line, fact in facts.items()
        if fact.fact_id in ids - {lead.fact_id}
    }
    sessions = {one.session_id for line in facts for one in line.spells[-1].evidence if not line.hides(one)}
    said = next((one for one in reversed(first.spells[-1].evidence) if one.norm == norm), None)
    joined[first] = replace(
        lead,
        value=said.value if said is not None else text,
        norm=norm,
        source=said.assertion_id if said is not None else lead.source,
        confidence=max(fact.confidence for fact in facts.values()),
        importance=max(fact.importance for fact in facts.values()),
        last_said=max(fact.last_said for fact in facts.values()),
        reinforced=len(sessions) - 1,
    )
    return joined
