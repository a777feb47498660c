"""What can be listed of a scope beside its facts (docs/architecture/retrieval.md, "Other reads")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from domain.conversation import UserRef
from domain.errors import InvalidInputError, NotFoundError
from domain.memory.facts import FactRow
from domain.memory.vocabulary import builtin_vocabulary

MOST_ITEMS = 500

Item = Mapping[str, object]
"""A row under the names of the contract."""


class Listed(StrEnum):
    """What can be listed."""

    SESSIONS = "sessions"
    JOBS = "jobs"
    CANDIDATES = "candidates"
    CLARIFICATIONS = "clarifications"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingQuery:
    """Which items of whom, newest first; ``session_id`` narrows messages and jobs to one session."""

    what: Listed
    tenant_id: str
    user: UserRef
    avatar_id: UUID
    session_id: UUID | None = None
    cursor: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage:
    """Items, and where the next page starts."""

    items: tuple[Item, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactStory:
    """A fact with its evidence and what became of it, oldest first."""

    fact: FactRow
    evidence: tuple[Item, ...]
    versions: tuple[tuple[Item, FactRow], ...]


class ReadsListings(Protocol):
    """Reads items of one scope."""

    async def page(self, query: ListingQuery) -> ListingPage:
        """Return one page."""
        ...

    async def story(self, tenant_id: str, user: UserRef, avatar_id: UUID, fact_id: UUID) -> FactStory | None:
        """Return the fact that has or had ``fact_id``, with everything behind it."""
        ...


class Listings:
    """The use case of lists and of one fact's story."""

    def __init__(self, *, reads: ReadsListings) -> None:
        self._reads = reads

    async def page(self, query: ListingQuery) -> ListingPage:
        """Return one page of what ``query`` asks for.

        Raises:
            InvalidInputError: the limit is not between 1 and 500, or the cursor is none of ours.
        """
        if not 1 <= query.limit <= MOST_ITEMS:
            raise InvalidInputError(f"limit: expected 1 to {MOST_ITEMS}", field="limit")
        return await self._reads.page(query)

    async def story(self, tenant_id: str, user: UserRef, avatar_id: UUID, fact_id: UUID) -> FactStory:
        """Return a fact with its evidence and its versions.

        Raises:
            NotFoundError: the scope has no such fact.
        """
        story = await self._reads.story(tenant_id, user, avatar_id, fact_id)
        if story is None:
            raise NotFoundError("no such fact")
        return story


def memory_types() -> Sequence[Item]:
    """Return the memory types that are known, with what belongs to each."""
    return [
        {
            "name": name,
            "description": kind.description,
            "keywords": list(kind.keywords),
            "importance": kind.importance,
            "visibility": kind.visibility,
        }
        for name, kind in sorted(builtin_vocabulary().types.items())
    ]
