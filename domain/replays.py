"""Replays: history run through the service again (docs/architecture/replay.md)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

Position = Mapping[str, str | int]
SessionRef = tuple[str, UUID]


class ReplayMode(StrEnum):
    """What a replay does with a session.

    ``FILL`` does what has no result in the generation that serves; ``REPROCESS`` does it again under the
    replay's own label, which begins to serve with the commit of each job; ``SHADOW`` does it again where no
    read sees it, until it is promoted.
    """

    FILL = "fill"
    REPROCESS = "reprocess"
    SHADOW = "shadow"


class ReplayStatus(StrEnum):
    """Where a replay stands."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    PROMOTING = "promoting"
    PROMOTED = "promoted"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessions:
    """Stored sessions that ended from ``since`` until before ``until``, of one tenant and user or of all."""

    until: datetime
    since: datetime | None = None
    tenant_id: str | None = None
    user_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecords:
    """The records of a topic in each partition from ``starts`` to before ``ends``, by its number as text."""

    topic: str
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A replay as it is kept.

    ``total`` is how many its source had when it was started; ``skipped`` counts what was left out, by the
    reason. ``position`` is where feeding goes on: a cursor of the source's own kind, None at the start.
    ``generation`` is ``live`` for a fill, else the label.
    """

    replay_id: str
    generation: str
    mode: ReplayMode
    status: ReplayStatus
    source: StoredSessions | TopicRecords
    rate: float | None
    total: int
    position: Position | None
    published: int
    skipped: Mapping[str, int]
    started_at: datetime
    finished_at: datetime | None = None


def total_of(*counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return the sum of ``counts``, name by name."""
    return dict(sum((Counter(one) for one in counts), Counter[str]()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayProgress:
    """How many jobs that a replay ordered stand where, by job status."""

    jobs: Mapping[str, int] = field(default_factory=dict)

    @property
    def open(self) -> int:
        """How many are still to end."""
        return sum(self.jobs.get(status, 0) for status in ("queued", "running", "retrying"))

    @property
    def dead(self) -> int:
        """How many ended without a result."""
        return self.jobs.get("dead", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A stored session to replay."""

    tenant_id: str
    user_id: UUID
    avatar_id: UUID
    session_id: UUID
    ended_at: datetime


class Standing(StrEnum):
    """What became of a session that was published."""

    UNSEEN = "unseen"
    OPEN = "open"
    ENDED = "ended"


class ReplayStore(Protocol):
    """The replays that are kept; every method is one unit of work."""

    async def create(self, replay: Replay) -> None:
        """Keep a new replay.

        Raises:
            ConflictError: its id is taken.
        """
        ...

    async def get(self, replay_id: str) -> Replay | None:
        """Return the replay with this id."""
        ...

    async def newest(self, *, most: int) -> Sequence[Replay]:
        """Return replays, newest first."""
        ...

    async def move(
        self, replay_id: str, *, start: Collection[ReplayStatus], to: ReplayStatus
    ) -> ReplayStatus | None:
        """Change the status if it is one of ``start``; return what it is then, None without such a replay."""
        ...

    async def begin_feeding(self, replay_id: str, feeder: UUID) -> bool:
        """Make ``feeder`` the one who feeds; False while another one has shown itself lately."""
        ...

    async def beat(self, replay_id: str, feeder: UUID) -> ReplayStatus | None:
        """Show that ``feeder`` lives; return the status, or None when somebody else feeds now."""
        ...

    async def end_feeding(self, replay_id: str, feeder: UUID) -> None:
        """Let somebody else feed."""
        ...

    async def next_sessions(self, replay: Replay, *, most: int) -> Sequence[StoredSession]:
        """Return the next stored sessions behind the position for which the mode has something to do."""
        ...

    async def count_sessions(self, mode: ReplayMode, label: str, source: StoredSessions) -> int:
        """Count the stored sessions of ``source`` for which the mode has something to do."""
        ...

    async def advance(
        self, replay_id: str, *, position: Position, published: int, skipped: Mapping[str, int]
    ) -> None:
        """Note that what lies before ``position`` was published or skipped; the counts are added."""
        ...

    async def standing(self, replay: Replay, sessions: Sequence[SessionRef]) -> Sequence[Standing]:
        """Say what became of ``sessions`` in the replay's generation, one answer each."""
        ...

    async def progress(self, replay_id: str) -> ReplayProgress:
        """Count the jobs that the replay ordered."""
        ...
