"""What one commit writes: the fold of what was read under the scope's lock, against the rows that are there.

A pure function between reading and writing (docs/architecture/memory-model.md, "The transaction"). Rows are
compared as rows, so that an unchanged fact keeps its revision and sends no event.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, TypeVar
from uuid import UUID, uuid5

from domain.events import FactChanged, MemoryNoticed
from domain.memory.assertions import Assertion, Retraction, Scope
from domain.memory.changes import Kind, kind_of
from domain.memory.facts import FactRow, row_of
from domain.memory.fold import DEFAULT, Opinion, distinct, fold
from domain.memory.projection import Candidate, Clarification, Contradiction, State, Status
from domain.memory.slots import slot_text
from domain.memory.stances import Mode
from domain.memory.timeline import Rules

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """A candidate that waits; its evidence is found by its id, which is a claim id."""

    candidate_id: UUID
    slot: str
    mode: Mode
    value: str
    confidence: float
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClarificationRow:
    """An open question: which of two facts holds."""

    clarification_id: UUID
    slot: str
    current: UUID
    other: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What was read under the lock for the affected slots.

    ``assertions`` are those of the serving generations, with the rows of the session at hand already
    replaced; ``opinions`` and ``retractions`` may be all of the scope's. The other fields are the rows of the
    affected slots as they are before the commit, a contradiction note with those of its older fact.
    """

    scope: Scope
    assertions: Sequence[Assertion]
    opinions: Sequence[Opinion] = ()
    retractions: Sequence[Retraction] = ()
    facts: Mapping[UUID, FactRow] = field(default_factory=dict)
    pending: Mapping[UUID, PendingRow] = field(default_factory=dict)
    clarifications: Mapping[UUID, ClarificationRow] = field(default_factory=dict)
    contradictions: frozenset[Contradiction] = frozenset()
    event_counter: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Why a commit happens, as its events tell it."""

    reason: str = "fold"
    session_id: UUID | None = None
    job_id: UUID | None = None
    traceparent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One entry of a fact's history; ``fact`` is the row as it is after the change, or was when it went."""

    fact_id: UUID
    revision: int
    change: Kind
    fact: FactRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """What to write. Removals come before upserts; ``event_counter`` is stored with the scope."""

    facts: tuple[FactRow, ...]
    facts_removed: tuple[UUID, ...]
    versions: tuple[Version, ...]
    pending: tuple[PendingRow, ...]
    pending_removed: tuple[UUID, ...]
    clarifications: tuple[ClarificationRow, ...]
    clarifications_removed: tuple[UUID, ...]
    contradictions: tuple[Contradiction, ...]
    contradictions_removed: tuple[Contradiction, ...]
    events: tuple[FactChanged | MemoryNoticed, ...]
    event_counter: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be written."""
        rows = self.facts or self.pending or self.clarifications or self.contradictions
        gone = self.facts_removed or self.pending_removed or self.clarifications_removed
        return not (rows or gone or self.contradictions_removed)

    @property
    def counts(self) -> Mapping[Kind, int]:
        """How many facts changed in which way."""
        return Counter(version.change for version in self.versions)

    @property
    def held(self) -> int:
        """How many candidates came to wait, or wait with more behind them."""
        return len(self.pending)


def reconcile(stored: Stored, occasion: Occasion, rules: Rules = DEFAULT) -> Projected:
    """Fold what is stored and return the difference to the rows; nothing when they are as they should be."""
    state = fold(stored.assertions, stored.opinions, stored.retractions, rules)
    evidence = {one.assertion_id: one for one in distinct(stored.assertions)}
    rows = {fact_id: row_of(fact, stored.scope, evidence) for fact_id, fact in state.facts.items()}
    versions = tuple(_versions(stored.facts, rows))
    gone = [one for one in versions if one.change in _GONE]
    pending = {one: _pending_row(found) for one, found in state.pending.items()}
    questions = {one.clarification_id: _clarification_row(one) for one in state.clarifications}
    noted = sorted(state.contradictions - stored.contradictions, key=_contradiction_key)
    notices = (*_candidates(stored, pending, state), *_questions(stored, questions), *_notes(noted))
    events, counter = _numbered(stored, occasion, versions, notices)
    return Projected(
        facts=tuple(one.fact for one in versions if one.change not in _GONE),
        facts_removed=tuple(one.fact_id for one in gone),
        versions=versions,
        pending=_changed(stored.pending, pending),
        pending_removed=tuple(sorted(stored.pending.keys() - pending.keys())),
        clarifications=_changed(stored.clarifications, questions),
        clarifications_removed=tuple(sorted(stored.clarifications.keys() - questions.keys())),
        contradictions=tuple(noted),
        contradictions_removed=tuple(
            sorted(stored.contradictions - state.contradictions, key=_contradiction_key)
        ),
        events=events,
        event_counter=counter,
    )


_GONE: Final = (Kind.ERASED, Kind.RENAMED)


def _versions(before: Mapping[UUID, FactRow], after: Mapping[UUID, FactRow]) -> Iterator[Version]:
    """Yield what happened to each fact, rows that go first, in an order that repeats."""
    now_named = {name: row.fact_id for row in after.values() for name in row.names}
    for fact_id in sorted(before.keys() - after.keys()):
        into = now_named.get(fact_id)
        last = replace(before[fact_id], revision=before[fact_id].revision + 1, merged_into=into)
        yield Version(
            fact_id=fact_id,
            revision=last.revision,
            change=Kind.ERASED if into is None else Kind.RENAMED,
            fact=last,
        )
    for fact_id in sorted(after):
        old = before.get(fact_id)
        if old is None:
            row = replace(after[fact_id], told_status=after[fact_id].status)
            yield Version(fact_id=fact_id, revision=row.revision, change=Kind.CREATED, fact=row)
        elif (changed := _version(old, after[fact_id])) is not None:
            yield changed


def _version(old: FactRow, new: FactRow) -> Version | None:
    told = replace(old, status=old.told_status) if old.told_status is not None else old
    if told.status is Status.EXPIRED and new.status is Status.ACTIVE and new.expires_at == old.expires_at:
        # The sweep wrote that its time is over; the fold knows no clock.
        new = replace(new, status=Status.EXPIRED)
    if told == new and old.status is new.status:
        return None
    row = replace(
        new,
        revision=old.revision + 1,
        told_status=new.status,
        created_at=old.created_at,
        last_seen_at=old.last_seen_at,
        deleted_at=old.deleted_at if new.status is Status.DELETED else None,
    )
    return Version(fact_id=row.fact_id, revision=row.revision, change=kind_of(told, new), fact=row)


def _pending_row(one: Candidate) -> PendingRow:
    return PendingRow(
        candidate_id=one.candidate_id,
        slot=slot_text(one.slot),
        mode=one.mode,
        value=one.value,
        confidence=round(one.confidence, _DIGITS),
        sessions=one.sessions,
    )


def _clarification_row(one: Clarification) -> ClarificationRow:
    return ClarificationRow(
        clarification_id=one.clarification_id, slot=slot_text(one.slot), current=one.current, other=one.other
    )


@dataclass(frozen=True, slots=True)
class _Notice:
    kind: str
    about: UUID
    ids: tuple[tuple[str, str], ...]


def _candidates(stored: Stored, after: Mapping[UUID, PendingRow], state: State) -> Iterator[_Notice]:
    known = {name for fact in state.facts.values() for name in fact.names}
    for candidate_id in sorted(stored.pending.keys() - after.keys()):
        kind = "candidate.promoted" if candidate_id in known else "candidate.discarded"
        yield _Notice(kind, candidate_id, (("candidate_id", str(candidate_id)),))
    for row in _changed(stored.pending, after):
        yield _Notice("candidate.held", row.candidate_id, (("candidate_id", str(row.candidate_id)),))


def _questions(stored: Stored, after: Mapping[UUID, ClarificationRow]) -> Iterator[_Notice]:
    for row in _changed(stored.clarifications, after):
        yield _asked("clarification.opened", row)
    for clarification_id in sorted(stored.clarifications.keys() - after.keys()):
        yield _asked("clarification.resolved", stored.clarifications[clarification_id])


def _asked(kind: str, row: ClarificationRow) -> _Notice:
    ids = (
        ("clarification_id", str(row.clarification_id)),
        ("current", str(row.current)),
        ("other", str(row.other)),
    )
    return _Notice(kind, row.clarification_id, ids)


def _notes(found: Iterable[Contradiction]) -> Iterator[_Notice]:
    for one in found:
        yield _Notice(
            "contradiction.found", one.older, (("older", str(one.older)), ("newer", str(one.newer)))
        )


def _contradiction_key(one: Contradiction) -> tuple[UUID, UUID, str]:
    return (one.older, one.newer, one.note)


Row = TypeVar("Row", PendingRow, ClarificationRow)


def _changed(before: Mapping[UUID, Row], after: Mapping[UUID, Row]) -> tuple[Row, ...]:
    return tuple(after[one] for one in sorted(after) if before.get(one) != after[one])


def _numbered(
    stored: Stored, occasion: Occasion, versions: Iterable[Version], notices: Iterable[_Notice]
) -> tuple[tuple[FactChanged | MemoryNoticed, ...], int]:
    """Give each event its id, by a counter: a digest of the row would repeat when an older value returns."""
    numbers = count(stored.event_counter + 1)
    facts = [
        FactChanged(
            event_id=uuid5(one.fact_id, str(next(numbers))),
            change=one.change,
            scope=stored.scope,
            fact=one.fact,
            gone=one.change in _GONE,
            reason=occasion.reason,
            session_id=occasion.session_id,
            job_id=occasion.job_id,
            traceparent=occasion.traceparent,
            correlation_id=occasion.correlation_id,
        )
        for one in versions
    ]
    others = [
        MemoryNoticed(
            event_id=uuid5(one.about, str(next(numbers))),
            kind=one.kind,
            scope=stored.scope,
            ids=one.ids,
            session_id=occasion.session_id,
            job_id=occasion.job_id,
            traceparent=occasion.traceparent,
            correlation_id=occasion.correlation_id,
        )
        for one in notices
    ]
    return (*facts, *others), stored.event_counter + len(facts) + len(others)
