import json
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.arrivals import Origin, Verdict
from domain.conversation import NIL_AVATAR
from domain.errors import (
    AfterwordError,
    ConflictError,
    EmbedderUnavailableError,
    InvalidInputError,
    ModelRefusedError,
    NotFoundError,
    StorageUnavailableError,
)
from domain.injection import Injection
from domain.jobs import JobStatus
from schemas.fact import Fact
from telemetry.metrics import Metrics
from tests.unit.gateway.conftest import Open
from tests.unit.gateway.fakes import (
    AVATAR,
    FACT,
    NOON,
    SESSION,
    USER,
    FakeInjections,
    FakeMemory,
    fact_row,
)

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json; charset=utf-8"}
TRANSCRIPT = "user: I live in Berlin.\nassistant: Nice city."


def extract_body(**changed: Any) -> dict[str, Any]:
    body = {
        "transcript": TRANSCRIPT,
        "session_id": str(SESSION),
        "user_id": str(USER),
        "avatar_id": str(AVATAR),
    }
    return {**body, **changed}


async def test_the_block_of_a_user_is_text_count_and_whether_it_applies(open_client: Open) -> None:
    inject = FakeInjections(Injection(text="## User Memory\n…", facts_count=1))

    async with open_client(inject=inject) as client:
        answer = await client.get(
            "/get_injection_context", params={"user_id": str(USER), "avatar_id": str(AVATAR)}
        )

    assert answer.status_code == 200
    assert answer.json() == {"text": "## User Memory\n…", "facts_count": 1, "applied": True}
    (asked,) = inject.asked
    assert (asked.tenant_id, asked.user.user_id, asked.avatar_id) == ("default", USER, AVATAR)


async def test_a_user_nobody_knows_gets_an_empty_block(open_client: Open) -> None:
    async with open_client() as client:
        answer = await client.get("/get_injection_context", params={"user_id": str(USER)})

    assert answer.json() == {"text": "", "facts_count": 0, "applied": False}


async def test_extract_waits_for_its_job_and_answers_the_bare_array_of_facts(open_client: Open) -> None:
    memory = FakeMemory(
        JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.RETRYING, JobStatus.COMPLETED, rows=[fact_row()]
    )

    async with open_client(memory) as client:
        answer = await client.post("/extract", json=extract_body())

    assert answer.status_code == 200
    (fact,) = answer.json()
    assert Fact.model_validate(fact).fact_value == "Berlin"
    assert set(fact) == set(Fact.model_fields) - {"evidence"}
    (accepted,) = memory.accepted
    assert accepted.origin is Origin.EXTRACT
    assert [(m.role, m.content) for m in accepted.messages or ()] == [
        ("user", "I live in Berlin."),
        ("assistant", "Nice city."),
    ]


async def test_extract_without_an_end_takes_the_moment_of_receipt_and_says_that_it_is_a_guess(
    open_client: Open,
) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)

    async with open_client(memory) as client:
        await client.post("/extract", json=extract_body())
        await client.post("/extract", json=extract_body(ended_at="2025-01-02T03:04:05+02:00"))

    guessed, told = memory.accepted
    assert (guessed.ended_at, guessed.end_is_assumed) == (NOON, True)
    assert (told.ended_at, told.end_is_assumed) == (datetime(2025, 1, 2, 1, 4, 5, tzinfo=UTC), False)


async def test_an_end_without_a_zone_is_utc_and_counted(open_client: Open, metrics: Metrics) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)

    async with open_client(memory) as client:
        await client.post("/extract", json=extract_body(ended_at="2025-01-02T03:04:05"))

    assert memory.accepted[0].ended_at == datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert metrics.registry.get_sample_value("memory_repairs_total", {"repair": "naive_time"}) == 1


async def test_a_repeat_of_extract_answers_the_same(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED, rows=[fact_row()])

    async with open_client(memory) as client:
        first = await client.post("/extract", json=extract_body())
        memory.verdict = Verdict.DUPLICATE
        again = await client.post("/extract", json=extract_body())

    assert again.status_code == 200
    assert again.content == first.content


async def test_extract_of_a_longer_session_waits_for_the_new_revision(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)
    memory.verdict, memory.revision = Verdict.REVISED, 2

    async with open_client(memory, answer_within_s=0.05) as client:
        answer = await client.post("/extract", json=extract_body())

    assert answer.status_code == 503


async def test_a_transcript_that_nobody_can_extract_is_503_and_never_no_facts(open_client: Open) -> None:
    async with open_client(FakeMemory(JobStatus.RUNNING, JobStatus.DEAD)) as client:
        answer = await client.post("/extract", json=extract_body())

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "upstream_unavailable"


async def test_extract_that_takes_too_long_is_503_and_may_be_asked_again(open_client: Open) -> None:
    async with open_client(FakeMemory(JobStatus.RUNNING), answer_within_s=0.05) as client:
        answer = await client.post("/extract", json=extract_body())

    assert answer.status_code == 503
    assert answer.json()["error"]["retryable"] is True


async def test_another_transcript_of_a_known_session_is_a_conflict(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)
    memory.verdict = Verdict.CONFLICT

    async with open_client(memory) as client:
        answer = await client.post("/extract", json=extract_body())

    assert answer.status_code == 409


@pytest.mark.parametrize("transcript", ["", "  \n\t ", "\x00\x07", "user:\nassistant:  "])
async def test_a_transcript_without_words_is_422_and_stored_nowhere(
    open_client: Open, transcript: str
) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)

    async with open_client(memory) as client:
        answer = await client.post("/extract", json=extract_body(transcript=transcript))

    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"field": "transcript"}
    assert memory.accepted == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[]", ""),
        (b'{"transcript": "anna lives in kyiv"}', "session_id"),
        (b'{"transcript": "x", "session_id": "anna", "user_id": "anna"}', "session_id"),
    ],
)
async def test_a_body_that_breaks_the_contract_is_422_and_is_not_quoted(
    open_client: Open, body: bytes, field: str
) -> None:
    async with open_client() as client:
        answer = await client.post("/extract", content=body, headers=JSON)

    assert answer.status_code == 422
    assert answer.json()["error"]["details"].get("field", "") == field
    assert "anna" not in answer.text


async def test_a_transcript_with_half_a_character_is_taken_in_without_it(
    open_client: Open, metrics: Metrics
) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)
    body = (
        f'{{"transcript": "user: I like \\ud83d tea\\u0000", "session_id": "{SESSION}", "user_id": "{USER}"}}'
    )

    async with open_client(memory) as client:
        answer = await client.post("/extract", content=body.encode(), headers=JSON)

    assert answer.status_code == 200
    (message,) = memory.accepted[0].messages or [None]
    assert message is not None
    assert message.content.startswith("I like ")
    assert message.content.isprintable()
    assert metrics.registry.get_sample_value("memory_repairs_total", {"repair": "cleaned_text"}) == 1


async def test_the_facts_of_a_user_are_listed_as_on_every_other_way(open_client: Open) -> None:
    memory = FakeMemory(rows=[fact_row()])

    async with open_client(memory) as client:
        answer = await client.get("/api_lis/memory", params={"user_id": str(USER), "types": ["food", "work"]})

    assert answer.json()["next_cursor"] == "next"
    (fact,) = answer.json()["items"]
    assert Fact.model_validate(fact).fact_id == FACT
    (query,) = memory.queries
    assert (query.user.user_id, query.avatar_id) == (USER, NIL_AVATAR)
    assert query.statuses == frozenset({"active"})
    assert query.categories == frozenset({"food", "work"})


async def test_forgetting_a_fact_says_how_many_went(open_client: Open) -> None:
    memory = FakeMemory()

    async with open_client(memory) as client:
        answer = await client.delete(f"/api_lis/memory/{FACT}", params={"user_id": str(USER)})

    assert (answer.status_code, answer.json()) == (200, {"removed": 1})
    assert memory.forgotten == [("default", FACT, USER)]


async def test_forgetting_a_fact_that_is_not_there_is_404(open_client: Open) -> None:
    memory = FakeMemory()
    memory.known = set()

    async with open_client(memory) as client:
        answer = await client.delete(f"/api_lis/memory/{FACT}")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("failure", "status", "code", "retryable"),
    [
        (InvalidInputError("limit: too much", field="limit"), 422, "invalid_request", False),
        (NotFoundError("no such job"), 404, "not_found", False),
        (ConflictError("other content"), 409, "conflict", False),
        (StorageUnavailableError("no connection"), 503, "storage_unavailable", True),
        (EmbedderUnavailableError("no answer"), 503, "upstream_unavailable", True),
        (ModelRefusedError("refused"), 503, "upstream_unavailable", False),
        (AfterwordError("what is this"), 503, "internal", False),
        (RuntimeError("anna lives in kyiv"), 503, "internal", True),
    ],
)
async def test_every_failure_has_its_code_and_status(
    open_client: Open, failure: Exception, status: int, code: str, retryable: bool
) -> None:
    inject = FakeInjections()
    inject.failure = failure

    async with open_client(inject=inject) as client:
        answer = await client.get("/get_injection_context", params={"user_id": str(USER)})

    assert answer.status_code == status
    assert answer.json()["ok"] is False
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["retryable"] is retryable
    assert "anna" not in answer.text


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json-x"]
)
async def test_a_page_of_another_site_cannot_write_from_a_browser(
    open_client: Open, kind: str | None
) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)
    headers = {"content-type": kind} if kind else {}

    async with open_client(memory) as client:
        answer = await client.post("/extract", content=json.dumps(extract_body()).encode(), headers=headers)

    assert answer.status_code == 422
    assert memory.accepted == []


async def test_a_user_id_that_is_none_is_422_and_names_the_parameter(open_client: Open) -> None:
    async with open_client() as client:
        answer = await client.get("/get_injection_context", params={"user_id": "anna"})

    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"field": "user_id"}
