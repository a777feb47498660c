"""Jobs: the record that orders one, and a job as others see it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from schemas.wire import Identifier, Received, Sent


class ExtractionJob(Received):
    """A record of a jobs topic: ids only, the words stay in the database."""

    kind: Literal["extract", "judge", "fold", "follow_up"]
    tenant_id: Identifier
    user_id: UUID
    avatar_id: UUID
    job_id: UUID
    session_id: UUID | None = None
    generation: str = "live"


class JobResult(Sent):
    """What a finished job did."""

    facts_created: int = 0
    facts_reinforced: int = 0
    facts_superseded: int = 0
    candidates_held: int = 0
    candidates_dropped: dict[str, int] = Field(default_factory=dict)
    windows: int = 0
    model_calls: int = 0
    questions_asked: int = 0
    judgements: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    provider: str = "rules"


class JobFailure(Sent):
    """Why the last attempt failed."""

    code: str
    message: str


class Job(Sent):
    """One extraction of one session at one generation."""

    job_id: UUID
    tenant_id: str
    user_id: UUID
    avatar_id: UUID
    session_id: UUID
    generation: str
    status: Literal["queued", "gated", "passthrough", "conflict", "running", "retrying", "completed", "dead"]
    duplicate: bool = False
    revision: int
    gate: str | None = None
    plan: str
    attempts: int
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    next_attempt_at: datetime | None = None
    processing_eta_seconds: float | None = None
    result: JobResult | None = None
    error: JobFailure | None = None
