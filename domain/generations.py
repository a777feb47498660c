"""Generations side by side: what promoting a shadow replay changes, and the change itself.

The difference is what the promotion would write, computed by the same function from the same reading
(docs/architecture/replay.md, "Diff and promote").
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from domain.errors import InvalidInputError, NotFoundError, PermanentError
from domain.memory.assertions import Assertion, Scope, claim_id
from domain.memory.changes import Kind
from domain.memory.facts import FactRow
from domain.memory.reconcile import Occasion, Projected, Stored, reconcile
from domain.memory.timeline import Rules
from domain.replays import ReplayMode, ReplayStatus

PROMOTION: Final = Occasion(reason="promote")

_PAGE: Final = 100
_PROVENANCE: Final = frozenset(
    {
        "source_session_id",
        "source_message_ids",
        "source_excerpt",
        "asserted_by",
        "extraction_method",
        "model",
        "spec_version",
        "reasoning",
    }
)


class NotPromotableError(PermanentError):
    """A replay cannot be promoted as it stands, or cannot be removed since it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The replay that made a generation, as far as its promotion needs it."""

    replay_id: str
    label: str
    mode: ReplayMode
    status: ReplayStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many sessions of a label stand where; ``named`` has some of those that cannot be promoted.

    ``ready`` are done and wait for the promotion, ``serving`` are served; ``open`` and ``dead`` have no
    result, ``changed`` have one of what the session no longer says, ``empty`` had nothing to read.
    """

    ready: int = 0
    serving: int = 0
    open: int = 0
    dead: int = 0
    changed: int = 0
    empty: int = 0
    named: Mapping[str, Sequence[UUID]] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """How many sessions a promotion would leave as they are."""
        return self.open + self.dead + self.changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which scopes to compare: of one tenant or user, or of all."""

    tenant_id: str | None = None
    user_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a fact is believed on: the statement of one session, as one generation reads it."""

    session_id: str
    generation: str
    message_ids: tuple[str, ...]
    excerpt: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDifference:
    """One fact before and after: None where there is none. ``fields`` names what differs of both."""

    fact_id: UUID
    change: Kind
    before: FactRow | None
    after: FactRow | None
    evidence_before: tuple[Evidence, ...]
    evidence_after: tuple[Evidence, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that differ, where there is a fact on both sides."""
        if self.before is None or self.after is None:
            return ()
        return tuple(
            one.name
            for one in fields(FactRow)
            if one.compare and getattr(self.before, one.name) != getattr(self.after, one.name)
        )

    @property
    def is_provenance_alone(self) -> bool:
        """Whether the fact stays what it is and only where it comes from is another."""
        return bool(self.fields) and _PROVENANCE.issuperset(self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDifference:
    """What a promotion changes in one scope; ``projected`` is what it would write."""

    scope: Scope
    sessions: tuple[UUID, ...]
    facts: tuple[FactDifference, ...]
    projected: Projected

    @property
    def added(self) -> int:
        """How many facts come."""
        return sum(one.before is None for one in self.facts)

    @property
    def gone(self) -> int:
        """How many facts go."""
        return sum(one.after is None for one in self.facts)

    @property
    def revised_provenance(self) -> int:
        """How many facts stay what they are and come from elsewhere."""
        return sum(one.is_provenance_alone for one in self.facts)

    @property
    def changed(self) -> int:
        """How many facts become something else."""
        return len(self.facts) - self.added - self.gone - self.revised_provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionReading:
    """A scope as a promotion finds it: what serves, and what would after it."""

    sessions: tuple[UUID, ...]
    before: Stored
    after: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a promotion is."""

    scopes: int
    total: int
    facts: int


class GenerationStore(Protocol):
    """Generations beside the one that serves; every method is one unit of work."""

    async def find(self, replay_id: str) -> Generation | None:
        """Return the generation of a replay."""
        ...

    async def standing(self, label: str, chosen: Chosen) -> Standing:
        """Count the sessions of ``label``."""
        ...

    async def scopes(self, label: str, chosen: Chosen, *, after: Scope | None, most: int) -> Sequence[Scope]:
        """Return scopes that have sessions to promote, in a stable order, beginning after ``after``."""
        ...

    async def count_scopes(self, label: str) -> int:
        """Count the scopes that have sessions to promote."""
        ...

    async def read(self, label: str, scope: Scope) -> PromotionReading:
        """Read a scope as it is at one moment, without holding anything back."""
        ...

    async def promote(self, label: str, scope: Scope) -> int:
        """Serve ``label`` in a scope, with one event for each changed fact; return how many changed."""
        ...

    async def mark(self, replay_id: str, *, status: ReplayStatus) -> None:
        """Note where the replay stands."""
        ...


class CompareGenerations:
    """Tell, scope after scope, what a promotion would change; nothing is written."""

    def __init__(self, *, store: GenerationStore, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    async def standing(self, replay_id: str, chosen: Chosen) -> Standing:
        """Count where the sessions of the replay stand.

        Raises:
            NotFoundError: there is no such replay.
            InvalidInputError: it is no shadow.
        """
        return await self._store.standing((await _shadow(self._store, replay_id)).label, chosen)

    async def __call__(self, replay_id: str, chosen: Chosen) -> AsyncIterator[ScopeDifference]:
        """Yield the difference of each scope, one at a time.

        Raises:
            NotFoundError: there is no such replay.
            InvalidInputError: it is no shadow.
        """
        label = (await _shadow(self._store, replay_id)).label
        after: Scope | None = None
        while page := await self._store.scopes(label, chosen, after=after, most=_PAGE):
            for scope in page:
                reading = await self._store.read(label, scope)
                if reading.sessions:
                    yield compare(reading, self._rules)
            after = page[-1]


class PromoteGeneration:
    """Make a shadow replay what is served, scope after scope; interrupted, it goes on where it stopped."""

    def __init__(self, *, store: GenerationStore) -> None:
        self._store = store

    async def __call__(
        self, replay_id: str, *, partial: bool, on_scope: Callable[[Progress], None]
    ) -> Progress:
        """Promote all scopes that are left; each one changes at once or not at all.

        With ``partial``, sessions without a result, or with one of what they no longer say, stay as they are.

        Raises:
            NotFoundError: there is no such replay.
            InvalidInputError: it is no shadow.
            NotPromotableError: it is not complete, and ``partial`` does not allow that.
        """
        generation = await _shadow(self._store, replay_id)
        if not partial:
            _check_complete(generation, await self._store.standing(generation.label, Chosen()))
        await self._store.mark(replay_id, status=ReplayStatus.PROMOTING)
        done, facts = 0, 0
        total = await self._store.count_scopes(generation.label)
        after: Scope | None = None
        while page := await self._store.scopes(generation.label, Chosen(), after=after, most=_PAGE):
            for scope in page:
                facts += await self._store.promote(generation.label, scope)
                done += 1
                on_scope(Progress(scopes=done, total=max(done, total), facts=facts))
            after = page[-1]
        await self._store.mark(replay_id, status=ReplayStatus.PROMOTED)
        return Progress(scopes=done, total=done, facts=facts)


def compare(reading: PromotionReading, rules: Rules) -> ScopeDifference:
    """Return what promoting the scope of ``reading`` would write, with the evidence of each fact."""
    projected = reconcile(reading.after, PROMOTION, rules)
    old, new = _by_claim(reading.before.assertions), _by_claim(reading.after.assertions)
    removed = set(projected.facts_removed)
    facts: list[FactDifference] = []
    for version in projected.versions:
        before = reading.before.facts.get(version.fact_id)
        after = None if version.fact_id in removed else version.fact
        facts.append(
            FactDifference(
                fact_id=version.fact_id,
                change=version.change,
                before=before,
                after=after,
                evidence_before=_evidence(before, old),
                evidence_after=_evidence(after, new),
            )
        )
    return ScopeDifference(
        scope=reading.after.scope, sessions=reading.sessions, facts=tuple(facts), projected=projected
    )


def _by_claim(assertions: Sequence[Assertion]) -> Mapping[UUID, Sequence[Assertion]]:
    found: dict[UUID, list[Assertion]] = {}
    for one in sorted(assertions, key=lambda one: one.order):
        found.setdefault(claim_id(one.scope, one.claim), []).append(one)
    return found


def _evidence(fact: FactRow | None, said: Mapping[UUID, Sequence[Assertion]]) -> tuple[Evidence, ...]:
    if fact is None:
        return ()
    found = sorted((one for name in fact.names for one in said.get(name, ())), key=lambda one: one.order)
    return tuple(
        Evidence(
            session_id=one.session_id,
            generation=one.generation,
            message_ids=one.message_ids,
            excerpt=one.excerpt,
            said_at=one.said_at,
        )
        for one in found
    )


async def _shadow(store: GenerationStore, replay_id: str) -> Generation:
    found = await store.find(replay_id)
    if found is None:
        raise NotFoundError(f"there is no replay {replay_id}")
    if found.mode is not ReplayMode.SHADOW:
        raise InvalidInputError(f"{replay_id} is in mode {found.mode}: a shadow is expected")
    if found.status is ReplayStatus.DISCARDED:
        raise InvalidInputError(f"{replay_id} was discarded")
    return found


def _check_complete(generation: Generation, standing: Standing) -> None:
    hint = "wait for them, replay them again, or promote the rest with --partial"
    if generation.status in (ReplayStatus.RUNNING, ReplayStatus.PAUSED):
        raise NotPromotableError(
            f"{generation.replay_id} is {generation.status}: not all of its sessions were ordered; {hint}"
        )
    if standing.left:
        counts = f"{standing.open} open, {standing.dead} dead, {standing.changed} changed since"
        raise NotPromotableError(f"sessions of {generation.replay_id} are not ready: {counts}; {hint}")
