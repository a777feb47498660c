"""The difference of two states, as the rows to write and the events to publish."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from domain.memory.projection import Candidate, Clarification, Contradiction, Fact, State, Status


class Kind(StrEnum):
    """What happened to a fact."""

    CREATED = "created"
    REINFORCED = "reinforced"
    REVISED = "revised"
    SUPERSEDED = "superseded"
    MERGED = "merged"
    RENAMED = "renamed"
    DELETED = "deleted"
    EXPIRED = "expired"
    RESTORED = "restored"
    ERASED = "erased"


class Shown(Protocol):
    """What decides the name of a change: a fact, or its row."""

    @property
    def status(self) -> Status:
        """What the fact is."""
        ...

    @property
    def merged_into(self) -> UUID | None:
        """The fact that it is shown as a part of."""
        ...

    @property
    def reinforced(self) -> int:
        """How many more sessions say it."""
        ...


@dataclass(frozen=True, slots=True)
class Created:
    """A fact that was not there; it may be born as history."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Reinforced:
    """A fact with more sessions behind it."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Revised:
    """A fact whose text, times or rank changed in another way."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Superseded:
    """A fact that no longer holds."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Merged:
    """A fact that is now a part, or a wording, of another one; ``fact`` is None when its row goes."""

    fact_id: UUID
    into: UUID
    fact: Fact | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """A fact that a command hides."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Restored:
    """A fact that holds again."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Erased:
    """A fact that has no evidence any more."""

    fact_id: UUID


@dataclass(frozen=True, slots=True)
class Held:
    """A candidate that waits, or waits with more behind it."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Promoted:
    """A candidate that became a fact."""

    candidate_id: UUID


@dataclass(frozen=True, slots=True)
class Discarded:
    """A candidate that has no evidence any more."""

    candidate_id: UUID


@dataclass(frozen=True, slots=True)
class Opened:
    """A question to the user."""

    clarification: Clarification


@dataclass(frozen=True, slots=True)
class Resolved:
    """A question that needs no answer any more."""

    clarification: Clarification


@dataclass(frozen=True, slots=True)
class Found:
    """A contradiction between two slots."""

    contradiction: Contradiction


FactChange = Created | Reinforced | Revised | Superseded | Merged | Deleted | Restored | Erased
Change = FactChange | Held | Promoted | Discarded | Opened | Resolved | Found


def difference(before: State, after: State) -> list[Change]:
    """Return what leads from ``before`` to ``after``, rows that go first, in an order that repeats."""
    return [*_facts(before, after), *_candidates(before, after), *_questions(before, after)]


def _facts(before: State, after: State) -> Iterator[FactChange]:
    now_named = {name: fact.fact_id for fact in after.facts.values() for name in fact.names}
    for fact_id in sorted(before.facts.keys() - after.facts.keys()):
        into = now_named.get(fact_id)
        yield Erased(fact_id) if into is None else Merged(fact_id, into, None)
    for fact_id in sorted(after.facts):
        change = _change(before.facts.get(fact_id), after.facts[fact_id])
        if change is not None:
            yield change


def _change(old: Fact | None, new: Fact) -> FactChange | None:
    if old is None or old == new:
        return Created(new) if old is None else None
    kind = kind_of(old, new)
    if kind is Kind.MERGED and new.merged_into is not None:
        return Merged(new.fact_id, new.merged_into, new)
    return _CHANGES[kind](new)


def kind_of(old: Shown, new: Shown) -> Kind:
    """Name what happened to a fact that is not as it was."""
    if new.status is Status.DELETED and old.status is not Status.DELETED:
        return Kind.DELETED
    if new.status is Status.ACTIVE and old.status is not Status.ACTIVE:
        return Kind.RESTORED
    if new.status is Status.SUPERSEDED and old.status in (Status.ACTIVE, Status.EXPIRED):
        return Kind.SUPERSEDED if new.merged_into is None else Kind.MERGED
    return Kind.REINFORCED if new.reinforced > old.reinforced else Kind.REVISED


_CHANGES: Final[dict[Kind, Callable[[Fact], FactChange]]] = {
    Kind.REINFORCED: Reinforced,
    Kind.REVISED: Revised,
    Kind.SUPERSEDED: Superseded,
    Kind.DELETED: Deleted,
    Kind.RESTORED: Restored,
}


def _candidates(before: State, after: State) -> Iterator[Change]:
    for candidate_id in sorted(before.pending.keys() - after.pending.keys()):
        known = {name for fact in after.facts.values() for name in fact.names}
        yield Promoted(candidate_id) if candidate_id in known else Discarded(candidate_id)
    for candidate_id in sorted(after.pending):
        if before.pending.get(candidate_id) != after.pending[candidate_id]:
            yield Held(after.pending[candidate_id])


def _questions(before: State, after: State) -> Iterator[Change]:
    asked = sorted(after.clarifications - before.clarifications, key=lambda one: one.clarification_id)
    settled = sorted(before.clarifications - after.clarifications, key=lambda one: one.clarification_id)
    yield from map(Opened, asked)
    yield from map(Resolved, settled)
    noted = sorted(
        after.contradictions - before.contradictions, key=lambda one: (one.older, one.newer, one.note)
    )
    yield from map(Found, noted)
