"""A fact on the wire, everywhere the same."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from schemas.wire import Sent


class Evidence(Sent):
    """A place where a fact was said."""

    session_id: UUID
    generation: str
    message_ids: tuple[str, ...]
    excerpt: str | None
    said_at: datetime
    confidence: float
    method: str


class Fact(Sent):
    """What is remembered. ``fact_value`` is as said; ``intervals`` are when it held, null being open."""

    fact_id: UUID
    tenant_id: str
    user_id: UUID
    avatar_id: UUID
    category: str
    fact_key: str
    fact_value: str
    content: str
    polarity: Literal["positive", "negative"]
    status: str
    mode: str
    confidence: float
    importance: float
    memory_type: Literal["long", "short"]
    shared: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    intervals: tuple[tuple[datetime | None, datetime | None], ...] = ()
    expires_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_said_at: datetime
    last_seen_at: datetime | None = None
    deleted_at: datetime | None = None
    reinforced: int
    revision: int
    merged_into: UUID | None = None
    previous_version_id: UUID | None = None
    source_session_id: UUID | None = None
    source_excerpt: str | None = None
    dedup_hash: str
    asserted_by: str | None = None
    extraction_method: str | None = None
    model: str | None = None
    spec_version: str | None = None
    reasoning: str | None = None
    evidence: tuple[Evidence, ...] | None = None


class FactList(Sent):
    """One page of facts, and where the next one starts."""

    items: tuple[Fact, ...]
    next_cursor: str | None = None


class FoundFact(Sent):
    """A fact that is about a question, and how well it fits."""

    fact: Fact
    score: float


class FoundFacts(Sent):
    """What was found, best first."""

    items: tuple[FoundFact, ...]
    next_cursor: str | None = None


class Context(Sent):
    """What a prompt should know, as text and as the facts it was made of."""

    text: str
    core: tuple[Fact, ...] = ()
    relevant: tuple[FoundFact, ...] = ()
    preferences: tuple[Fact, ...] = ()
    summary: str | None = None
    fingerprint: str = ""


class Version(Sent):
    """One change of a fact, and the fact as it was then."""

    revision: int
    change: str
    at: datetime
    reason: str
    session_id: UUID | None = None
    fact: Fact


class FactStory(Sent):
    """A fact with its evidence, and what became of it, oldest first."""

    fact: Fact
    versions: tuple[Version, ...]
