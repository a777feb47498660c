"""Gather what a prompt should know: core facts, and what is relevant (docs/architecture/injection.md)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from domain.conversation import UserRef
from domain.injection import PendingSession, RankedFact
from domain.memory.facts import FactRow
from domain.search_memory import FoundFact, SearchMemory, SearchRequest

MOST_CORE: Final = 10
_MOST_RELEVANT: Final = 10
_CORE: Final = "core"
_RELEVANT: Final = "relevant"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRead:
    """The facts that are always on, and what is still to come; ``user_id`` is None for a user never seen."""

    user_id: UUID | None
    facts: tuple[FactRow, ...]
    pending: tuple[PendingSession, ...]


class ReadsCore(Protocol):
    """Reads the facts that are always on."""

    async def core(
        self, tenant_id: str, user: UserRef, avatar_id: UUID, *, limit: int, as_of: datetime | None
    ) -> CoreRead:
        """Return the important and certain facts of a scope, the most important first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was gathered: core facts, and what is relevant to the question and not among them."""

    user_id: UUID | None
    core: tuple[FactRow, ...]
    relevant: tuple[FoundFact, ...]
    pending: tuple[PendingSession, ...]

    def ranked(self) -> Sequence[RankedFact]:
        """Return the facts in the order of a prompt: the core, which changes least, then the relevant."""
        return [*_core(self.core), *_relevant(self.relevant)]


class GatherContext:
    """Reads the core and searches for the rest."""

    def __init__(self, *, core: ReadsCore, search: SearchMemory) -> None:
        self._core = core
        self._search = search

    async def __call__(self, request: SearchRequest) -> Gathered:
        """Return what a prompt with the question of ``request`` should know; without one the core alone.

        Raises:
            StorageUnavailableError: the database did not answer.
        """
        core = await self._core.core(
            request.tenant_id, request.user, request.avatar_id, limit=MOST_CORE, as_of=request.as_of
        )
        found = await self._search(request) if request.query.strip() else ()
        known = {fact.fact_id for fact in core.facts}
        return Gathered(
            user_id=core.user_id,
            core=core.facts,
            relevant=tuple(one for one in found if one.fact.fact_id not in known)[:_MOST_RELEVANT],
            pending=core.pending,
        )


def _core(facts: Iterable[FactRow]) -> Iterator[RankedFact]:
    for fact in facts:
        yield _ranked(fact, score=fact.importance / 10, reason=_CORE)


def _relevant(found: Iterable[FoundFact]) -> Iterator[RankedFact]:
    for one in found:
        yield _ranked(one.fact, score=one.score, reason=_RELEVANT)


def _ranked(fact: FactRow, *, score: float, reason: str) -> RankedFact:
    return RankedFact(
        fact_id=fact.fact_id,
        category=fact.category,
        fact_key=fact.fact_key,
        value=fact.fact_value,
        confidence=fact.confidence,
        last_said_at=fact.last_said_at,
        score=round(score, 4),
        reason=reason,
    )
