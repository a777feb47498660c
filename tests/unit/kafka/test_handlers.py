"""What the handlers of topics hand on."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from consumers.conversation_ended import ConversationEndedHandler
from consumers.conversation_messages import MessagePostedHandler
from consumers.conversation_replay import ConversationReplayHandler
from consumers.extraction_jobs import ExtractionJobHandler
from consumers.failures import Handled
from consumers.requests import error_reply
from consumers.translation import Repair, Repairs
from domain.arrivals import Acceptance, EndedConversation, Origin, PostedMessage, Verdict
from domain.errors import InvalidInputError, StorageUnavailableError
from domain.extract_session import Ending
from domain.jobs import JobError, JobKind, JobOrder
from domain.outbox import Headers, RawRecord

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SESSION = UUID("00000000-0000-4000-8000-000000000001")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def record(body: dict[str, Any], headers: Headers = ()) -> RawRecord:
    return RawRecord(
        topic="t",
        partition=0,
        offset=0,
        key=None,
        value=json.dumps(body).encode(),
        headers=headers,
        timestamp=NOW,
    )


def ended(**fields: Any) -> dict[str, Any]:
    return {
        "session_id": str(SESSION),
        "external_user_id": "ana",
        "ended_at": "2026-03-01T10:00:00Z",
        **fields,
    }


class Intake:
    """Takes note of what reaches intake."""

    def __init__(self) -> None:
        self.conversations: list[EndedConversation] = []
        self.messages: list[PostedMessage] = []
        self.repairs: Repairs = Repairs()
        self.verdicts: list[Verdict] = []

    async def accept(self, conversation: EndedConversation) -> Acceptance:
        self.conversations.append(conversation)
        return Acceptance(verdict=Verdict.ACCEPTED, job_id=uuid4(), user_id=uuid4(), revision=1)

    async def post(self, posted: PostedMessage) -> None:
        self.messages.append(posted)


async def test_an_ended_conversation_reaches_intake_with_its_trace() -> None:
    intake = Intake()
    handle = ConversationEndedHandler(
        intake.accept, on_repairs=intake.repairs.update, on_verdict=intake.verdicts.append
    )

    await handle(record(ended(), headers=(("traceparent", TRACE.encode()), ("correlation_id", b"\xff"))))

    (conversation,) = intake.conversations
    assert (conversation.origin, conversation.traceparent) == (Origin.LIVE, TRACE)
    assert conversation.correlation_id is None
    assert intake.verdicts == [Verdict.ACCEPTED]


@pytest.mark.parametrize("headers", [(), (("replay-mode", b"fill"), ("replay-id", b"r1"))])
async def test_a_replayed_conversation_fills_the_live_memory(headers: Headers) -> None:
    intake = Intake()
    handle = ConversationReplayHandler(intake.accept, on_repairs=intake.repairs.update)

    await handle(record(ended(), headers=headers))

    (conversation,) = intake.conversations
    assert (conversation.origin, conversation.generation) == (Origin.REPLAY, "live")


@pytest.mark.parametrize("mode", ["reprocess", "shadow"])
async def test_a_replay_under_a_label_is_of_that_generation(mode: str) -> None:
    intake = Intake()
    handle = ConversationReplayHandler(intake.accept, on_repairs=intake.repairs.update)
    ordered = {"replay-id": "r1", "replay-mode": mode, "replay-generation": "r1"}

    await handle(record(ended(), headers=tuple((name, value.encode()) for name, value in ordered.items())))

    (conversation,) = intake.conversations
    assert (conversation.generation, conversation.replay_id) == ("r1", "r1")
    assert conversation.replay_mode == mode


@pytest.mark.parametrize(
    ("mode", "generation", "named"),
    [
        ("again", None, "replay-mode"),
        ("fill", "r1", "replay-generation"),
        ("shadow", None, "replay-generation"),
        ("shadow", "live", "replay-generation"),
        ("reprocess", "R1", "replay-generation"),
        ("reprocess", "r" * 64, "replay-generation"),
        ("reprocess", "r1\n", "replay-generation"),
    ],
)
async def test_a_replay_without_a_mode_or_label_that_can_be_is_refused(
    mode: str, generation: str | None, named: str
) -> None:
    handle = ConversationReplayHandler(Intake().accept, on_repairs=Repairs().update)
    label = (("replay-generation", generation.encode()),) if generation is not None else ()

    with pytest.raises(InvalidInputError, match=named):
        await handle(record(ended(), headers=(("replay-mode", mode.encode()), *label)))


async def test_a_posted_message_without_a_time_was_said_when_it_was_sent() -> None:
    intake = Intake()
    handle = MessagePostedHandler(intake.post, on_repairs=intake.repairs.update)
    body = ended(position=3, role="user", content="hi")

    await handle(record(body))

    (posted,) = intake.messages
    assert (posted.message.sent_at, posted.message.message_id) == (NOW, "#3")


async def test_a_posted_message_without_a_text_is_counted_and_passed_by() -> None:
    intake = Intake()
    handle = MessagePostedHandler(intake.post, on_repairs=intake.repairs.update)

    await handle(record(ended(position=3, role="user", content=[{"type": "image"}])))

    assert intake.messages == []
    assert intake.repairs[Repair.EMPTY_MESSAGE] == 1


async def test_an_id_that_comes_twice_in_a_session_loses_nothing_that_was_said() -> None:
    intake = Intake()
    handle = ConversationEndedHandler(intake.accept, on_repairs=intake.repairs.update)
    said = ("first", "second", "first")
    twice = [{"message_id": "m", "role": "user", "content": text} for text in said]

    await handle(record(ended(messages=twice)))

    (conversation,) = intake.conversations
    assert [(message.message_id, message.content) for message in conversation.messages or ()] == [
        ("m", "first"),
        ("m#1", "second"),
    ]
    assert intake.repairs[Repair.REPEATED_ID] == 2


class Extraction:
    """Does jobs, or raises what it is told to."""

    def __init__(self, error: Exception | None = None, *, ending: Ending = Ending.DONE) -> None:
        self._error = error
        self._ending = ending
        self.done: list[tuple[JobOrder, RawRecord]] = []
        self.failed: list[JobError] = []
        self.put_back: list[tuple[JobOrder, float]] = []

    async def __call__(self, order: JobOrder, record: RawRecord) -> Ending:
        if self._error is not None:
            raise self._error
        self.done.append((order, record))
        return self._ending

    def ends(self, ending: Ending) -> None:
        self._ending = ending

    async def fail(self, order: JobOrder, record: RawRecord, error: JobError) -> Ending:
        self.failed.append(error)
        return self._ending

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        self.put_back.append((order, job_seconds))


class Share:
    """Has a worker for everybody but ``full``."""

    def __init__(self, full: str | None = None) -> None:
        self._full = full
        self.enough: list[str] = []

    def admits(self, tenant: str) -> bool:
        return tenant != self._full

    def has_enough(self, tenant: str) -> None:
        self.enough.append(tenant)

    @asynccontextmanager
    async def worker(self, tenant: str) -> AsyncGenerator[None]:
        yield


def job() -> dict[str, Any]:
    return {
        "kind": "extract",
        "tenant_id": "default",
        "user_id": str(uuid4()),
        "avatar_id": str(UUID(int=0)),
        "job_id": str(uuid4()),
        "session_id": str(SESSION),
    }


async def test_a_job_is_done_with_the_record_that_ordered_it() -> None:
    extraction, ordering = Extraction(), record(job())

    await ExtractionJobHandler(extraction, share=Share())(ordering)

    ((order, given),) = extraction.done
    assert (order.kind, order.session_id, given) == (JobKind.EXTRACT, SESSION, ordering)


async def test_an_unforeseen_error_fails_its_job_alone() -> None:
    extraction = Extraction(ZeroDivisionError("their words"))

    await ExtractionJobHandler(extraction, share=Share())(record(job()))

    assert extraction.failed == [JobError(code="internal", message="ZeroDivisionError")]


async def test_an_outage_during_a_job_is_no_failure_of_it() -> None:
    extraction = Extraction(StorageUnavailableError("away"))

    with pytest.raises(StorageUnavailableError):
        await ExtractionJobHandler(extraction, share=Share())(record(job()))

    assert extraction.failed == []


async def test_a_job_that_may_not_begin_is_put_off_and_waits_for_no_worker() -> None:
    extraction, ordering = Extraction(), record(job())

    handled = await ExtractionJobHandler(extraction, share=Share(full="default"))(ordering)

    assert (handled, extraction.done) == (Handled.BEYOND_SLOTS, [])
    assert [order.session_id for order, _ in extraction.put_back] == [SESSION]


async def test_a_job_that_finds_no_slot_is_put_off_for_as_long_as_jobs_take() -> None:
    extraction, share = Extraction(ending=Ending.DONE), Share()
    times = iter([0.0, 4.0, 10.0])
    handler = ExtractionJobHandler(extraction, share=share, clock=lambda: next(times))
    await handler(record(job()))
    extraction.ends(Ending.BEYOND_SLOTS)

    handled = await handler(record(job()))

    assert handled is Handled.BEYOND_SLOTS
    assert share.enough == ["default"]
    assert [seconds for _, seconds in extraction.put_back] == [4.0]


async def test_what_has_no_job_of_its_own_is_never_put_off() -> None:
    extraction = Extraction()

    handled = await ExtractionJobHandler(extraction, share=Share(full="default"))(
        record({**job(), "kind": "fold"})
    )

    assert (handled, len(extraction.done), extraction.put_back) == (Handled.DONE, 1, [])


@pytest.mark.parametrize("ending", list(Ending))
@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
async def test_the_end_of_a_job_is_told_to_whoever_counts_failures(
    ending: Ending, error: Exception | None
) -> None:
    handled = await ExtractionJobHandler(Extraction(error, ending=ending), share=Share())(record(job()))

    assert handled is Handled(ending.value)


@pytest.mark.parametrize(
    "told", [b"a secret that somebody typed", b"00-1", b"\xff", TRACE.encode() + b" more"], ids=repr
)
async def test_a_trace_header_that_is_none_is_not_carried_on(told: bytes) -> None:
    intake, extraction = Intake(), Extraction()
    headers = (("traceparent", told), ("correlation_id", b"x" * 201))

    await ConversationEndedHandler(intake.accept, on_repairs=intake.repairs.update)(record(ended(), headers))
    await ExtractionJobHandler(extraction, share=Share())(record(job(), headers))

    carried = (intake.conversations[0], extraction.done[0][0])
    assert {(one.traceparent, one.correlation_id) for one in carried} == {(None, None)}


def test_a_reply_never_quotes_a_bug() -> None:
    assert b"their words" not in error_reply(ZeroDivisionError("their words"))
