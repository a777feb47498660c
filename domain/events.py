"""What happened, as events that leave with the transaction that made it so (docs/architecture/events.md)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.jobs import Job, JobOrder, Lane
from domain.memory.assertions import Scope
from domain.memory.facts import FactRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChanged:
    """A fact was created, reinforced, revised, superseded, merged, renamed, deleted, restored or erased.

    ``fact`` is the fact as it is now, or as it was when its row went (``gone``). It also feeds the
    compacted topic.
    """

    event_id: UUID
    change: str
    scope: Scope
    fact: FactRow
    gone: bool
    reason: str
    session_id: UUID | None
    job_id: UUID | None
    traceparent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNoticed:
    """A candidate was held, promoted or discarded; a question opened or resolved; a contradiction found.

    ``kind`` is the event type without its prefix, e.g. ``candidate.held``; ``ids`` are its named ids.
    """

    event_id: UUID
    kind: str
    scope: Scope
    ids: tuple[tuple[str, str], ...]
    session_id: UUID | None
    job_id: UUID | None
    traceparent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanged:
    """A job was queued, gated, started, put back, completed or died."""

    event_id: UUID
    change: str
    job: Job
    traceparent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrdered:
    """A job is due: a record for its jobs topic, now or at ``available_at``."""

    lane: Lane
    order: JobOrder
    available_at: datetime | None = None


DomainEvent = FactChanged | MemoryNoticed | JobChanged | JobOrdered
