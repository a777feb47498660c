"""Arrivals as rows: a session, its messages and the job that follows from a decision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from domain.arrivals import Decision, EndedConversation, Origin, Verdict
from domain.conversation import Message, UserRef
from domain.events import DomainEvent
from domain.jobs import LANE_OF_PLAN, JobStatus, Lane, job_id_of
from domain.ports import RecallText
from storage.job_rows import changed, ordered, user_id_of
from storage.json_text import Row

DEFAULT_PLAN = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A conversation on its way into the tables."""

    conversation: EndedConversation
    recall: Mapping[str, RecallText]
    grace: timedelta

    @property
    def key(self) -> tuple[str, UUID]:
        """What makes two arrivals one session."""
        return (self.conversation.tenant_id, self.conversation.session_id)


def proposed_user_id(tenant_id: str, user: UserRef) -> UUID:
    """Return the id that ``user`` has unless the table of proxy users says another one."""
    return user.user_id if user.user_id is not None else user_id_of(tenant_id, user.key)


def lane_of(origin: Origin, plan: str) -> Lane:
    """Return the lane of a conversation; what is replayed never overtakes what is live."""
    return LANE_OF_PLAN.get(plan, Lane.BULK) if origin is not Origin.REPLAY else Lane.REPLAY


def session_row(arrival: Arrival, decision: Decision, user_id: UUID) -> dict[str, Any]:
    """Return the row of the session after ``decision``."""
    one = arrival.conversation
    return {
        "tenant_id": one.tenant_id,
        "session_id": one.session_id,
        "user_id": user_id,
        "external_user_id": one.user.external_user_id if one.user.user_id is None else None,
        "avatar_id": one.avatar_id,
        "started_at": one.started_at,
        "ended_at": decision.ended_at,
        # What an end that brings its messages announces is not waited for: some of them may have had no text.
        "message_count": one.message_count if one.messages is None else None,
        "timezone": one.timezone,
        "language": one.language,
        "digest": decision.digest.hex(),
    }


def job_row(arrival: Arrival, verdict: Verdict, *, user_id: UUID, plan: str, now: datetime) -> dict[str, Any]:
    """Return the row of a new job."""
    one = arrival.conversation
    is_empty, is_waiting = verdict is Verdict.EMPTY, verdict is Verdict.WAITING
    return {
        "job_id": job_id_of(one.tenant_id, one.session_id, one.generation),
        "tenant_id": one.tenant_id,
        "user_id": user_id,
        "avatar_id": one.avatar_id,
        "session_id": one.session_id,
        "generation": one.generation,
        "status": JobStatus.GATED.value if is_empty else JobStatus.QUEUED.value,
        "revision": 1,
        "gate": "empty" if is_empty else None,
        "plan": plan,
        "lane": lane_of(one.origin, plan).value,
        "fence": 0,
        "attempts": 0,
        "queued_at": now,
        "started_at": None,
        "finished_at": now if is_empty else None,
        "next_attempt_at": now + arrival.grace if is_waiting else None,
        "outcome": None,
        "error": None,
        "traceparent": one.traceparent,
        "correlation_id": one.correlation_id,
        "replay_id": one.replay_id,
        "replay_mode": one.replay_mode.value if one.replay_mode is not None else None,
    }


def job_events(job: Mapping[str, Any]) -> list[DomainEvent]:
    """Return what is told, and ordered, when ``job`` was queued or gated."""
    if job["status"] == JobStatus.GATED:
        return [changed("gated", job)]
    return [changed("queued", job), ordered(job, at=job["next_attempt_at"])]


def message_rows(
    session_id: UUID, messages: Iterable[Message], recall: Mapping[str, RecallText]
) -> list[Row]:
    """Return the rows of ``messages``; one without an entry in ``recall`` keeps the words that it has."""
    return [_message_row(session_id, message, recall.get(message.message_id)) for message in messages]


def recall_id(session_id: UUID, message_id: str) -> UUID:
    """Name the recallable row of a message."""
    return uuid5(session_id, message_id)


def _message_row(session_id: UUID, message: Message, words: RecallText | None) -> Row:
    return {
        "message_id": message.message_id,
        "position": message.position,
        "role": message.role,
        "content": message.content,
        "name": message.name,
        "sent_at": message.sent_at,
        "recall_id": recall_id(session_id, message.message_id),
        "tokens": list(words.tokens) if words is not None else None,
        "dl": words.length if words is not None else None,
    }
