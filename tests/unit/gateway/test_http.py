import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from domain.jobs import JobStatus
from gateway.parts import AccessToken, ComponentState
from telemetry.metrics import Metrics
from tests.unit.gateway.conftest import Open
from tests.unit.gateway.fakes import FACT, SESSION, USER, FakeInjections, FakeMemory, FakeReadiness, fact_row

pytestmark = pytest.mark.anyio

TOKENS = tuple(
    AccessToken(secret=secret, tenant_id=tenant)
    for secret, tenant in (("first-token-of-acme", "acme"), ("second-token-of-beta", "beta"))
)


async def test_health_answers_what_the_original_answered(open_client: Open) -> None:
    async with open_client() as client:
        answer = await client.get("/health")

    assert (answer.status_code, answer.json()) == (200, {"service": "memory_service", "status": "ok"})


async def test_ready_when_every_part_is(open_client: Open) -> None:
    async with open_client() as client:
        answer = await client.get("/ready")

    assert answer.status_code == 200
    assert answer.json()["ready"] is True


async def test_not_ready_says_which_part_is_not(open_client: Open) -> None:
    states = {
        "database": ComponentState(is_ready=True),
        "broker": ComponentState(is_ready=False, detail="not reached"),
    }

    async with open_client(readiness=FakeReadiness(states)) as client:
        answer = await client.get("/ready")

    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "components": {
            "database": {"ready": True, "detail": ""},
            "broker": {"ready": False, "detail": "not reached"},
        },
    }


async def test_a_part_that_hangs_is_not_ready(open_client: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def __call__(self) -> Mapping[str, ComponentState]:
            await asyncio.sleep(60)
            return {}

    monkeypatch.setattr("gateway.http._READY_WITHIN_S", 0.01)
    async with open_client(readiness=Hanging()) as client:
        answer = await client.get("/ready")

    assert answer.status_code == 503


async def test_metrics_are_those_of_this_service(open_client: Open, metrics: Metrics) -> None:
    metrics.late_replies.inc()

    async with open_client() as client:
        answer = await client.get("/metrics")

    assert "memory_late_replies_total 1.0" in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


async def test_answers_are_counted_by_class_of_status(open_client: Open, metrics: Metrics) -> None:
    async with open_client() as client:
        await client.get("/health")
        await client.get("/nowhere")

    assert metrics.registry.get_sample_value("memory_http_requests_total", {"status": "2xx"}) == 1
    assert metrics.registry.get_sample_value("memory_http_requests_total", {"status": "4xx"}) == 1


async def test_the_topics_and_the_routes_are_described(open_client: Open) -> None:
    async with open_client(asyncapi={"asyncapi": "3.0.0"}) as client:
        topics = await client.get("/asyncapi")
        routes = await client.get("/openapi.json")
        page = await client.get("/docs")

    assert topics.json() == {"asyncapi": "3.0.0"}
    assert "transcript" in str(routes.json()["paths"]["/extract"]["post"]["requestBody"])
    assert page.status_code == 200


async def test_a_route_that_is_not_there_answers_like_every_failure(open_client: Open) -> None:
    async with open_client() as client:
        answer = await client.get("/nowhere")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_probes_need_no_token(open_client: Open, path: str) -> None:
    async with open_client(tokens=TOKENS) as client:
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer first-token", "Basic first-token-of-acme", "Bearer é"],
)
@pytest.mark.parametrize(
    "path", ["/metrics", "/docs", "/openapi.json", "/asyncapi", "/nowhere", "/api_lis/memory"]
)
async def test_every_other_route_is_closed_without_a_known_token(
    open_client: Open, path: str, authorization: str | None
) -> None:
    headers = [] if authorization is None else [(b"authorization", authorization.encode())]

    async with open_client(tokens=TOKENS) as client:
        answer = await client.get(path, headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8052", "127.0.0.1.evil.example", "[::2]:1"])
async def test_without_tokens_a_name_that_was_bent_to_this_machine_opens_nothing(
    open_client: Open, host: str
) -> None:
    async with open_client() as client:
        bent = await client.get("/metrics", headers={"host": host})
        probe = await client.get("/health", headers={"host": host})

    assert bent.status_code == 403
    assert probe.status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8052", "127.0.0.1:1", "[::1]:8052"])
async def test_without_tokens_this_machine_gets_in_by_any_of_its_names(open_client: Open, host: str) -> None:
    async with open_client() as client:
        assert (await client.get("/metrics", headers={"host": host})).status_code == 200


async def test_a_failure_nobody_foresaw_is_counted_too(open_client: Open, metrics: Metrics) -> None:
    inject = FakeInjections()
    inject.failure = RuntimeError("unforeseen")

    async with open_client(inject=inject) as client:
        await client.get("/get_injection_context", params={"user_id": str(USER)})

    assert metrics.registry.get_sample_value("memory_http_requests_total", {"status": "5xx"}) == 1


async def test_a_token_reaches_its_own_tenant_alone(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED, rows=[fact_row()])
    headers = {"authorization": "bearer second-token-of-beta"}

    async with open_client(memory, tokens=TOKENS) as client:
        await client.get(
            "/api_lis/memory", params={"user_id": str(USER), "tenant_id": "acme"}, headers=headers
        )
        await client.delete(f"/api_lis/memory/{FACT}", params={"tenant_id": "acme"}, headers=headers)
        body = {
            "transcript": "hello",
            "session_id": str(SESSION),
            "user_id": str(USER),
            "tenant_id": "acme",
        }
        await client.post("/extract", json=body, headers=headers)

    tenants = {memory.queries[0].tenant_id, memory.forgotten[0][0], memory.accepted[0].tenant_id}
    assert tenants == {"beta"}


async def test_a_body_that_announces_too_much_is_refused_unread(open_client: Open) -> None:
    async with open_client(body_limit=100) as client:
        answer = await client.post("/extract", content=b"x" * 101)

    assert answer.status_code == 413


async def test_a_body_that_grows_too_large_is_refused_while_it_comes(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 10

    async with open_client(memory, body_limit=100) as client:
        answer = await client.post(
            "/extract", content=endless(), headers={"content-type": "application/json"}
        )

    assert answer.status_code == 413
    assert memory.accepted == []


async def test_the_trace_of_a_caller_goes_on_in_the_job(open_client: Open) -> None:
    memory = FakeMemory(JobStatus.COMPLETED)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body = {"transcript": "hello", "session_id": str(SESSION), "user_id": str(USER)}

    async with open_client(memory) as client:
        await client.post("/extract", json=body, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        await client.post("/extract", json=body)

    told, new = (conversation.traceparent or "" for conversation in memory.accepted)
    assert told.startswith(f"00-{trace}-")
    assert "00f067aa0ba902b7" not in told
    assert new.startswith("00-")
    assert trace not in new
