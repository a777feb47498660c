"""The HTTP of the original memory service, on a real socket."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.e2e.conftest import Engine
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


@pytest.fixture
async def http(afterword: RunningService) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=afterword.http, trust_env=False, timeout=40) as client:
        yield client


async def test_health_and_ready_say_so(http: httpx.AsyncClient) -> None:
    assert (await http.get("/health")).json() == {"service": "memory_service", "status": "ok"}
    ready = await http.get("/ready")
    assert ready.status_code == 200, ready.text


@pytest.mark.parametrize("path", ["/metrics", "/docs", "/openapi.json", "/asyncapi"])
async def test_what_operators_read_is_there(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)

    assert answer.status_code == 200
    assert answer.text


async def test_extract_gives_the_facts_of_a_transcript_and_a_repeat_the_same(http: httpx.AsyncClient) -> None:
    body = _transcript("User: My name is Nadia.\nUser: I live in Porto.")

    first = await http.post("/extract", json=body)
    again = await http.post("/extract", json=body)

    assert first.status_code == 200, first.text
    assert {fact["fact_value"] for fact in first.json()} >= {"Porto", "Nadia"}
    assert again.json() == first.json()


@pytest.mark.parametrize("transcript", ["", "  \n "])
async def test_a_blank_transcript_is_a_fault_of_the_caller(http: httpx.AsyncClient, transcript: str) -> None:
    assert (await http.post("/extract", json=_transcript(transcript))).status_code == 422


async def test_the_injection_context_is_that_of_the_topics(http: httpx.AsyncClient, engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto."))
    whose = {"user_id": str(engine.user_id), "avatar_id": "00000000-0000-0000-0000-000000000000"}

    answer = (await http.get("/get_injection_context", params=whose)).json()

    reply = await engine.injected()
    assert answer == {"text": reply.text, "facts_count": reply.facts_count, "applied": True}


async def test_a_user_without_memory_gets_an_empty_context(http: httpx.AsyncClient) -> None:
    answer = await http.get("/get_injection_context", params={"user_id": str(uuid4())})

    assert answer.json() == {"text": "", "facts_count": 0, "applied": False}


async def test_a_fact_that_is_deleted_is_listed_and_injected_no_more(
    http: httpx.AsyncClient, engine: Engine
) -> None:
    await engine.tell(engine.conversation("I live in Porto.", "My name is Nadia."))
    whose = {"user_id": str(engine.user_id)}
    listed = (await http.get("/api_lis/memory", params=whose)).json()["items"]
    gone = next(fact for fact in listed if fact["fact_value"] == "Porto")

    answer = await http.delete(f"/api_lis/memory/{gone['fact_id']}", params=whose)

    assert answer.status_code == 200
    after = (await http.get("/api_lis/memory", params=whose)).json()["items"]
    assert [fact["fact_value"] for fact in after] == ["Nadia"]
    assert "Porto" not in (await engine.injected()).text


async def test_the_fact_of_nobody_cannot_be_deleted(http: httpx.AsyncClient) -> None:
    assert (await http.delete(f"/api_lis/memory/{uuid4()}")).status_code == 404


def _transcript(transcript: str) -> dict[str, Any]:
    return {
        "transcript": transcript,
        "session_id": str(uuid4()),
        "user_id": str(uuid4()),
        "avatar_id": "00000000-0000-0000-0000-000000000000",
    }
