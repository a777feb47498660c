"""Jobs as rows, and what is told when one changes."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID, uuid5

from domain.events import JobChanged, JobOrdered
from domain.jobs import Job, JobError, JobKind, JobOrder, JobOutcome, JobStatus, Lane
from storage.json_text import Row

JOB_COLUMNS: Final[LiteralString] = """
    j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status, j.revision, j.gate,
    j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at, j.next_attempt_at,
    j.outcome,
    j.error, j.traceparent, j.correlation_id
"""


def job_from_row(row: Mapping[str, Any]) -> Job:
    """Return the job of a row of ``JOB_COLUMNS``."""
    return Job(
        job_id=row["job_id"],
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        avatar_id=row["avatar_id"],
        session_id=row["session_id"],
        generation=row["generation"],
        status=JobStatus(row["status"]),
        revision=row["revision"],
        gate=row["gate"],
        plan=row["plan"],
        attempts=row["attempts"],
        queued_at=row["queued_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        next_attempt_at=row["next_attempt_at"],
        outcome=JobOutcome(**row["outcome"]) if row["outcome"] is not None else None,
        error=JobError(**row["error"]) if row["error"] is not None else None,
    )


def order_from_row(row: Mapping[str, Any]) -> JobOrder:
    """Return the order that makes a worker take the job of a row of ``JOB_COLUMNS``."""
    return JobOrder(
        kind=JobKind.EXTRACT,
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        avatar_id=row["avatar_id"],
        job_id=row["job_id"],
        session_id=row["session_id"],
        generation=row["generation"],
        traceparent=row["traceparent"],
        correlation_id=row["correlation_id"],
    )


def changed(change: str, row: Mapping[str, Any]) -> JobChanged:
    """Tell that the job of ``row`` changed; a second telling of the same change has the same id."""
    job = job_from_row(row)
    return JobChanged(
        event_id=uuid5(job.job_id, f"{job.revision}:{row['fence']}:{change}"),
        change=change,
        job=job,
        traceparent=row["traceparent"],
        correlation_id=row["correlation_id"],
    )


def ordered(
    row: Mapping[str, Any], *, kind: JobKind = JobKind.EXTRACT, at: datetime | None = None
) -> JobOrdered:
    """Order the job of ``row``, or what of ``kind`` follows it, on its lane: at once or at a time to come."""
    order = replace(order_from_row(row), kind=kind)
    return JobOrdered(lane=Lane(row["lane"]), order=order, available_at=at)


def outcome_row(outcome: JobOutcome) -> Row:
    """Return ``outcome`` as it is kept with the job."""
    return asdict(replace(outcome, candidates_dropped=dict(outcome.candidates_dropped)))


def user_id_of(tenant_id: str, external_user_id: str) -> UUID:
    """Name a user known by a writer's own id; the same for ever, so that no race can make two."""
    return uuid5(_USERS, f"{tenant_id}\x1f{external_user_id}")


_USERS: Final = UUID("7d0c2b0e-8a3f-5f6e-9d25-1f5a1f7f5b02")
