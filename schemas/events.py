"""Data of the events on ``memory.events.v1``; the CloudEvents attributes are in the headers."""

from uuid import UUID

from schemas.fact import Fact
from schemas.jobs import Job
from schemas.wire import Sent


class FactEvent(Sent):
    """``memory.fact.*``: a fact as it is now, or as it was when it went."""

    fact: Fact
    previous: Fact | None = None
    reason: str
    session_id: UUID | None = None
    job_id: UUID | None = None


class JobEvent(Sent):
    """``memory.job.*``: a job as it is now."""

    job: Job


class NoticeEvent(Sent):
    """``memory.candidate.*``, ``memory.clarification.*`` and ``memory.contradiction.*``: ids, no words."""

    ids: dict[str, str]
    session_id: UUID | None = None
    job_id: UUID | None = None
