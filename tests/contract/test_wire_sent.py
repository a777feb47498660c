"""The wire: what is written, and that its models and documents say so."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import jsonschema  # type: ignore[import-untyped]  # no stubs
import pytest

from consumers.decoding import decode
from consumers.injection_requested import injection_body
from consumers.translation import order_of
from domain.events import FactChanged, JobChanged, JobOrdered
from domain.injection import IncludedFact, Injection, PendingSession
from domain.jobs import Job, JobError, JobKind, JobOrder, JobOutcome, JobStatus, Lane
from domain.memory.assertions import Scope
from domain.memory.facts import FactRow
from domain.memory.projection import Status
from domain.memory.stances import Mode
from domain.outbox import RawRecord
from producers.dead_letters import DeadLetterEncoder
from producers.encoding import Encoder
from schemas.events import FactEvent, JobEvent
from schemas.export import asyncapi, json_schemas
from schemas.fact import Fact
from schemas.injection import InjectionReply
from schemas.jobs import ExtractionJob
from schemas.topics import Topics

SESSION = UUID("00000000-0000-4000-8000-000000000001")
USER = UUID("00000000-0000-4000-8000-000000000002")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(value: bytes = b"", **fields: Any) -> RawRecord:
    return RawRecord(
        **{
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "key": None,
            "value": value,
            "headers": (),
            "timestamp": NOW,
            **fields,
        }
    )


def fact_row() -> FactRow:
    return FactRow(
        fact_id=uuid4(),
        tenant_id="default",
        user_id=str(USER),
        avatar_id=str(UUID(int=0)),
        category="identity",
        fact_key="home_city",
        fact_value="Oslo",
        confidence=0.9,
        status=Status.ACTIVE,
        source_session_id=str(SESSION),
        source_message_ids=("m1",),
        source_excerpt="I live in Oslo",
        dedup_hash="0" * 64,
        slot="home_city",
        mode=Mode.HOLDS,
        norm="oslo",
        content="The user lives in Oslo.",
        importance=7.0,
        reinforced=1,
        first_said_at=NOW,
        last_said_at=NOW,
        valid_from=NOW,
        valid_to=None,
        intervals=((NOW, None),),
        expires_at=None,
        superseded_by=None,
        merged_into=None,
        names=frozenset(),
        asserted_by="user",
        extraction_method="rules",
        model=None,
        spec_version="1",
        reasoning="",
    )


def encoder() -> Encoder:
    return Encoder(Topics("x."), "afterword", now=lambda: NOW)


@pytest.mark.parametrize("gone", [False, True])
def test_a_change_of_a_fact_is_an_event_and_the_fact_as_it_is_now(gone: bool) -> None:
    row, event_id = fact_row(), uuid4()
    event = FactChanged(
        event_id=event_id,
        change="created",
        scope=Scope(tenant="default", user=str(USER), avatar=row.avatar_id),
        fact=row,
        gone=gone,
        reason="said",
        session_id=SESSION,
        job_id=None,
    )

    told, now_is = encoder()(event)

    assert (told.topic, told.key) == ("x.memory.events.v1", f"default:{USER}".encode())
    assert (now_is.topic, now_is.key) == ("x.memory.facts.v1", str(row.fact_id).encode())
    assert dict(told.headers) == {
        "ce_specversion": b"1.0",
        "ce_id": str(event_id).encode(),
        "ce_type": b"memory.fact.created",
        "ce_source": b"afterword",
        "ce_time": b"2026-03-01T12:00:00Z",
        "ce_subject": str(row.fact_id).encode(),
        "content-type": b"application/json",
    }
    body = json.loads(told.value or b"")
    jsonschema.validate(body, with_definitions("FactEvent"))
    assert FactEvent.model_validate(body).fact.fact_value == "Oslo"
    assert (now_is.value is None) is gone
    if now_is.value is not None:
        assert set(json.loads(now_is.value)) == set(Fact.model_fields) - {"evidence"}


def with_definitions(name: str) -> dict[str, Any]:
    text = json.dumps(json_schemas(Topics())).replace("#/components/schemas/", "#/$defs/")
    return {"$ref": f"#/$defs/{name}", "$defs": json.loads(text)}


def test_a_job_is_told_with_its_trace_and_its_result() -> None:
    job = Job(
        job_id=uuid4(),
        tenant_id="default",
        user_id=USER,
        avatar_id=UUID(int=0),
        session_id=SESSION,
        generation="live",
        status=JobStatus.DEAD,
        revision=1,
        gate=None,
        plan="free",
        attempts=3,
        queued_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        next_attempt_at=None,
        outcome=JobOutcome(candidates_dropped={"secret": 1}),
        error=JobError(code="unreadable", message="no provider answered readably"),
    )

    (told,) = encoder()(
        JobChanged(event_id=uuid4(), change="dead", job=job, traceparent="00-1", correlation_id="c")
    )

    body = json.loads(told.value or b"")
    jsonschema.validate(body, with_definitions("JobEvent"))
    assert JobEvent.model_validate(body).job.status == "dead"
    assert dict(told.headers)["traceparent"] == b"00-1"
    assert dict(told.headers)["ce_type"] == b"memory.job.dead"


def test_an_order_comes_back_as_it_was_given() -> None:
    order = JobOrder(
        kind=JobKind.EXTRACT,
        tenant_id="default",
        user_id=USER,
        avatar_id=UUID(int=0),
        job_id=uuid4(),
        session_id=SESSION,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        correlation_id="c",
    )

    (told,) = encoder()(JobOrdered(lane=Lane.BULK, order=order, available_at=NOW))

    assert told.topic == "x.extraction.jobs.bulk.v1"
    assert told.available_at == NOW
    assert order_of(decode(ExtractionJob, told.value), record(headers=told.headers)) == order


def test_an_injection_reply_is_as_its_model_says() -> None:
    injection = Injection(
        text="## User Memory\n",
        facts_count=1,
        included=(IncludedFact(fact_id=uuid4(), score=0.9, reason="ranked"),),
        omitted={"budget": 2},
        pending=(PendingSession(session_id=SESSION, status="queued"),),
    )

    body = injection_body(injection)

    assert set(body) == set(InjectionReply.model_fields)
    assert InjectionReply.model_validate(body).applied


def test_a_dead_letter_keeps_key_value_and_headers_byte_for_byte() -> None:
    dead = record(b"\xff\x00", key=b"\xfe", headers=(("h", b"\xff"), ("h", b"2"), ("dlq-error", b"old")))

    letter = DeadLetterEncoder(Topics())(
        dead, error_class="invalid", reason="user_id: missing", attempts=1, first_failed_at=NOW
    )

    assert (letter.topic, letter.key, letter.value) == ("afterword.dead-letters.v1", b"\xfe", b"\xff\x00")
    assert letter.headers[:2] == (("h", b"\xff"), ("h", b"2"))
    assert dict(letter.headers[2:]) == {
        "dlq-topic": b"t",
        "dlq-partition": b"0",
        "dlq-offset": b"1",
        "dlq-error": b"user_id: missing",
        "dlq-error-class": b"invalid",
        "dlq-attempts": b"1",
        "dlq-first-failed-at": b"2026-03-01T12:00:00+00:00",
        "dlq-replays": b"0",
    }


def test_the_topics_are_those_of_the_contract() -> None:
    assert Topics("p.").every == (
        "p.conversation.messages.v1",
        "p.conversation.ended.v1",
        "p.conversation.replay.v1",
        "p.extraction.jobs.priority.v1",
        "p.extraction.jobs.standard.v1",
        "p.extraction.jobs.bulk.v1",
        "p.extraction.jobs.replay.v1",
        "p.memory.injection.requests.v1",
        "p.memory.queries.v1",
        "p.memory.commands.v1",
        "p.memory.events.v1",
        "p.memory.facts.v1",
        "p.afterword.dead-letters.v1",
    )


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi(Topics(), version="0")

    for channel in document["channels"].values():
        for message in channel["messages"].values():
            assert message["payload"]["$ref"].rsplit("/", 1)[1] in document["components"]["schemas"]
    for operation in document["operations"].values():
        assert operation["channel"]["$ref"].removeprefix("#/channels/") in document["channels"]
