"""Request and reply of an injection."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field, model_validator

from schemas.conversation import Scoped
from schemas.wire import Moment, Sent


class InjectionRequest(Scoped):
    """Ask for the memory that belongs in the next prompt."""

    mode: Literal["ranked", "relevant"] = "ranked"
    query: str | None = None
    char_budget: int | None = Field(default=None, ge=0, le=1_000_000)
    token_budget: int | None = Field(default=None, ge=0, le=250_000)
    as_of: Moment | None = None
    wait_for_session: UUID | None = None
    wait_ms: int | None = Field(default=None, ge=0, le=5_000)

    @model_validator(mode="after")
    def _has_one_budget(self) -> "InjectionRequest":
        if self.char_budget is not None and self.token_budget is not None:
            raise ValueError("expected char_budget or token_budget, not both")
        return self


class IncludedFact(Sent):
    """A fact in the text, and what put it there."""

    fact_id: UUID
    score: float
    reason: str


class PendingSession(Sent):
    """A session that ended and is not remembered yet."""

    session_id: UUID
    status: str


class Clarification(Sent):
    """A question that the user could settle."""

    clarification_id: UUID
    question: str
    left: str
    right: str


class InjectionReply(Sent):
    """The text for the prompt; ``applied`` says that there is one."""

    text: str
    facts_count: int
    applied: bool
    included: tuple[IncludedFact, ...] = ()
    omitted: dict[str, int] = Field(default_factory=dict)
    pending_sessions: tuple[PendingSession, ...] = ()
    clarifications: tuple[Clarification, ...] = ()
    tokens_estimate: int = 0
    fingerprint: str = ""
    as_of: datetime | None = None
