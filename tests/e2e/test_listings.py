"""Lists of a scope, and the story of a fact, over Kafka."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from producers.client_errors import MemoryNotFoundError
from tests.e2e.conftest import Engine

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def _listed(engine: Engine, kind: str, **more: Any) -> list[dict[str, Any]]:
    """Return all pages of a list, two items a page."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await engine.client.listed(kind, user=engine.user_id, limit=2, cursor=cursor, **more)
        assert len(page["items"]) <= 2
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


async def test_sessions_jobs_and_messages_are_listed_newest_first_in_pages(engine: Engine) -> None:
    told = [engine.conversation("I live in Porto.", "I love tea.", day=day) for day in range(3)]
    for one in told:
        await engine.tell(one)

    sessions = await _listed(engine, "sessions.list")
    jobs = await _listed(engine, "jobs.list")
    messages = await _listed(engine, "messages.recent")
    of_one = await _listed(engine, "messages.recent", session_id=told[0]["session_id"])

    newest_first = [one["session_id"] for one in reversed(told)]
    assert [one["session_id"] for one in sessions] == newest_first
    assert {one["status"] for one in sessions} == {"completed"}
    assert {one["session_id"] for one in jobs} == set(newest_first)
    assert [one["session_id"] for one in messages] == [one for one in newest_first for _ in range(2)]
    assert [one["content"] for one in of_one] == ["I love tea.", "I live in Porto."]


async def test_the_story_of_a_fact_has_its_evidence_and_each_change(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Lisbon."))
    await engine.tell(engine.conversation("I moved to Porto.", day=10))
    facts = (await engine.client.facts(user=engine.user_id, status=["active", "superseded"])).items
    lisbon = next(fact for fact in facts if fact.fact_value == "Lisbon")

    fact = await engine.client.fact(lisbon.fact_id, user=engine.user_id)
    story = await engine.client.history(lisbon.fact_id, user=engine.user_id)

    assert fact.evidence is not None
    assert [one.excerpt for one in fact.evidence] == ["I live in Lisbon."]
    assert [one.change for one in story.versions] == ["created", "superseded"]
    assert [one.fact.status for one in story.versions] == ["active", "superseded"]
    assert story.fact.fact_id == lisbon.fact_id


async def test_nobody_reads_the_story_or_the_lists_of_another(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Lisbon."))
    (fact,) = (await engine.client.facts(user=engine.user_id)).items

    for stranger in (uuid4(), "never seen"):
        with pytest.raises(MemoryNotFoundError):
            await engine.client.fact(fact.fact_id, user=stranger)
        with pytest.raises(MemoryNotFoundError):
            await engine.client.history(fact.fact_id, user=stranger)
        for kind in (
            "sessions.list",
            "jobs.list",
            "messages.recent",
            "candidates.list",
            "clarifications.list",
        ):
            assert list((await engine.client.listed(kind, user=stranger))["items"]) == []


async def test_a_weak_word_waits_among_the_candidates_and_two_cities_of_one_day_ask(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Lisbon."))
    await engine.tell(engine.conversation("I live in Porto.", ended_at="2026-03-02T11:00:00Z"))

    asked = await _listed(engine, "clarifications.list")

    assert [{one["left"], one["right"]} for one in asked] == [{"Lisbon", "Porto"}]
    assert all(UUID(one["clarification_id"]) for one in asked)
    assert isinstance(await _listed(engine, "candidates.list"), list)


async def test_the_memory_types_are_told(engine: Engine) -> None:
    types = await engine.client.memory_types()

    assert {"preference", "identity", "work", "health"} <= {one["name"] for one in types}
