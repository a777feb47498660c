"""Domain events as records of the topics (docs/architecture/events.md)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import assert_never
from uuid import UUID

import orjson

from domain.events import DomainEvent, FactChanged, JobChanged, JobOrdered, MemoryNoticed
from domain.memory.assertions import Scope
from domain.memory.projection import Status
from domain.outbox import Headers, OutboxRecord
from producers.wire_json import fact_body, job_body, order_body, to_json
from schemas import headers
from schemas.topics import Topics


def _now() -> datetime:
    return datetime.now(UTC)


class Encoder:
    """Turns an event into its records: CloudEvents in binary mode, keyed so that order holds per scope.

    ``source`` names this installation in ``ce_source``. The id of an event comes with it, so that readers can
    drop what is sent twice.
    """

    def __init__(self, topics: Topics, source: str, *, now: Callable[[], datetime] = _now) -> None:
        self._topics = topics
        self._source = source.encode()
        self._now = now

    def __call__(self, event: DomainEvent) -> Sequence[OutboxRecord]:
        """Return the records that tell of ``event``, in the order in which they are to be sent."""
        match event:
            case FactChanged():
                return self._fact(event)
            case MemoryNoticed():
                return (self._notice(event),)
            case JobChanged():
                return (self._job(event),)
            case JobOrdered():
                return (self._order(event),)
            case unreachable:
                assert_never(unreachable)

    def _fact(self, event: FactChanged) -> Sequence[OutboxRecord]:
        fact = to_json(fact_body(event.fact))
        ids = {"session_id": event.session_id, "job_id": event.job_id}
        body = {"fact": orjson.Fragment(fact), "previous": None, "reason": event.reason, **ids}
        kind = f"memory.fact.{event.change}"
        about = self._event_headers(kind, event.event_id, str(event.fact.fact_id))
        about += _carried(event.correlation_id, event.traceparent)
        told = OutboxRecord(
            topic=self._topics.events, key=_scope_key(event.scope), value=to_json(body), headers=about
        )
        now_is = OutboxRecord(
            topic=self._topics.facts,
            key=str(event.fact.fact_id).encode(),
            # A view must not keep what a user had forgotten; said again, it comes again.
            value=None if event.gone or event.fact.status is Status.DELETED else fact,
            headers=about,
        )
        return told, now_is

    def _notice(self, event: MemoryNoticed) -> OutboxRecord:
        body = {"ids": dict(event.ids), "session_id": event.session_id, "job_id": event.job_id}
        subject = next((value for _, value in event.ids), "")
        return OutboxRecord(
            topic=self._topics.events,
            key=_scope_key(event.scope),
            value=to_json(body),
            headers=self._event_headers(f"memory.{event.kind}", event.event_id, subject)
            + _carried(event.correlation_id, event.traceparent),
        )

    def _job(self, event: JobChanged) -> OutboxRecord:
        job = event.job
        about = self._event_headers(f"memory.job.{event.change}", event.event_id, str(job.job_id))
        return OutboxRecord(
            topic=self._topics.events,
            key=f"{job.tenant_id}:{job.user_id}".encode(),
            value=to_json({"job": job_body(job)}),
            headers=about + _carried(event.correlation_id, event.traceparent),
        )

    def _order(self, event: JobOrdered) -> OutboxRecord:
        order = event.order
        return OutboxRecord(
            topic=self._topics.jobs(event.lane.value),
            key=f"{order.tenant_id}:{order.user_id}".encode(),
            value=to_json(order_body(order)),
            headers=(
                (headers.CONTENT_TYPE, headers.JSON),
                *_carried(order.correlation_id, order.traceparent),
            ),
            available_at=event.available_at,
        )

    def _event_headers(self, kind: str, event_id: UUID, subject: str) -> Headers:
        return (
            (headers.CE_SPECVERSION, b"1.0"),
            (headers.CE_ID, str(event_id).encode()),
            (headers.CE_TYPE, kind.encode()),
            (headers.CE_SOURCE, self._source),
            (headers.CE_TIME, self._now().isoformat().replace("+00:00", "Z").encode()),
            (headers.CE_SUBJECT, subject.encode()),
            (headers.CONTENT_TYPE, headers.JSON),
        )


def _scope_key(scope: Scope) -> bytes:
    return f"{scope.tenant}:{scope.user}".encode()


def _carried(correlation_id: str | None, traceparent: str | None) -> Headers:
    pairs = ((headers.CORRELATION_ID, correlation_id), (headers.TRACEPARENT, traceparent))
    return tuple((name, value.encode()) for name, value in pairs if value)
