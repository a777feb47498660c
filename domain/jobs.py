"""Jobs: one extraction of one session at one generation, claimed with a fencing number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

from domain.conversation import SessionText
from domain.memory.assertions import Scope
from domain.ports import WindowCandidates
from domain.replays import ReplayMode

_NAMESPACE: Final = UUID("2b7c5b0e-6f5e-5a53-8b0f-0d8f4f3a9c11")


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    GATED = "gated"
    PASSTHROUGH = "passthrough"
    CONFLICT = "conflict"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    DEAD = "dead"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to the job by itself."""
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.RETRYING)


class JobKind(StrEnum):
    """What a record of a jobs topic asks for."""

    EXTRACT = "extract"
    JUDGE = "judge"
    FOLD = "fold"
    FOLLOW_UP = "follow_up"


class Lane(StrEnum):
    """The jobs topics, by plan; replayed and ingested sessions have their own."""

    PRIORITY = "priority"
    STANDARD = "standard"
    BULK = "bulk"
    REPLAY = "replay"


LANE_OF_PLAN: Final = {
    "enterprise": Lane.PRIORITY,
    "growth": Lane.STANDARD,
    "starter": Lane.BULK,
    "free": Lane.BULK,
}


def job_id_of(tenant_id: str, session_id: UUID, generation: str) -> UUID:
    """Name the job of a session in a generation; the same for ever, so that a repeat finds it."""
    return uuid5(_NAMESPACE, f"{tenant_id}\x1f{session_id}\x1f{generation}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """A record of a jobs topic: ids only."""

    kind: JobKind
    tenant_id: str
    user_id: UUID
    avatar_id: UUID
    job_id: UUID
    session_id: UUID | None = None
    generation: str = "live"
    traceparent: str | None = None
    correlation_id: str | None = None

    @property
    def scope(self) -> Scope:
        """Whose memory the job is about."""
        return Scope(tenant=self.tenant_id, user=str(self.user_id), avatar=str(self.avatar_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job in the hands of one worker. ``fence`` must still be the job's when something is written for it.

    ``message_count`` is how many messages are waited for: what an end without messages of its own announced.
    ``content_digest`` is of what the session said when it was read.
    ``takeovers`` counts how often in a row a worker was lost with this job, without any progress of it.
    ``allowed_categories`` are the special categories that the tenant allows to be remembered.
    ``has_memory`` is False where nothing is stored in the scope yet.
    ``kept`` has the candidates of windows that were read before, by ``domain.windows.window_digest``.
    """

    order: JobOrder
    scope: Scope
    fence: int
    revision: int
    attempt: int
    session: SessionText
    message_count: int | None
    queued_at: datetime
    content_digest: bytes | None = None
    replay_mode: ReplayMode | None = None
    takeovers: int = 0
    kept: Mapping[str, WindowCandidates] = field(default_factory=dict)
    has_memory: bool = True
    allowed_categories: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What a finished extraction did, as it is kept with the job."""

    facts_created: int = 0
    facts_reinforced: int = 0
    facts_superseded: int = 0
    candidates_held: int = 0
    candidates_dropped: Mapping[str, int] = field(default_factory=dict)
    windows: int = 0
    model_calls: int = 0
    questions_asked: int = 0
    judgements: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    provider: str = "rules"
    degraded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why an attempt failed: a code from a closed set and a message without anybody's words."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as others see it."""

    job_id: UUID
    tenant_id: str
    user_id: UUID
    avatar_id: UUID
    session_id: UUID
    generation: str
    status: JobStatus
    revision: int
    gate: str | None
    plan: str
    attempts: int
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    next_attempt_at: datetime | None
    outcome: JobOutcome | None
    error: JobError | None
    duplicate: bool = False
