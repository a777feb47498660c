"""What an injection asks for and what is answered (docs/architecture/injection.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from domain.conversation import NIL_AVATAR, UserRef


class InjectionMode(StrEnum):
    """How facts are chosen."""

    RANKED = "ranked"
    RELEVANT = "relevant"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRequest:
    """A request for the memory of one scope; budgets are in characters or in tokens, not in both."""

    tenant_id: str
    user: UserRef
    avatar_id: UUID = NIL_AVATAR
    mode: InjectionMode = InjectionMode.RANKED
    query: str | None = None
    char_budget: int | None = None
    token_budget: int | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFact:
    """A fact as a prompt takes it, best first; without a ``score`` it is ranked by its confidence."""

    fact_id: UUID
    category: str
    fact_key: str
    value: str
    confidence: float
    last_said_at: datetime
    score: float | None = None
    reason: str = "ranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSession:
    """A session that ended and is not remembered yet."""

    session_id: UUID
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRead:
    """What the one statement of a ranked injection gives; ``user_id`` is None for a user never seen."""

    user_id: UUID | None
    facts: tuple[RankedFact, ...]
    pending: tuple[PendingSession, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedFact:
    """A fact in the text, with what put it there."""

    fact_id: UUID
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The answer: the text for the prompt, and what it was made of."""

    text: str
    facts_count: int
    included: tuple[IncludedFact, ...] = ()
    omitted: Mapping[str, int] = field(default_factory=dict)
    pending: tuple[PendingSession, ...] = ()
    tokens_estimate: int = 0
    fingerprint: str = ""
    as_of: datetime | None = None

    @property
    def applied(self) -> bool:
        """Whether there is a text to put into the prompt."""
        return bool(self.text)
