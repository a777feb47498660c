"""Questions to the memory over Kafka: what is found, what stays out, and what a prompt gets of it."""

from uuid import uuid4

import pytest

from tests.e2e.conftest import Engine

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_SAID = ("My name is Nadia.", "I live in Porto.", "I love black coffee.", "I have a parrot called Pixel.")


async def test_a_question_finds_the_facts_that_it_is_about(engine: Engine) -> None:
    await engine.tell(engine.conversation(*_SAID))

    found = await engine.client.search("What is my parrot called?", user=engine.user_id)
    nothing = await engine.client.search("quantum chromodynamics lattice", user=engine.user_id)

    assert "Pixel" in found[0].fact.fact_value
    assert found[0].score >= max(one.score for one in found)
    assert list(nothing) == []
    assert list(await engine.client.search("parrot", user=uuid4())) == []


async def test_a_context_has_the_core_first_and_what_is_relevant_after_it(engine: Engine) -> None:
    await engine.tell(engine.conversation(*_SAID))

    context = await engine.client.context("What is my parrot called?", user=engine.user_id)
    core = await engine.client.core_facts(user=engine.user_id)

    assert [fact.fact_id for fact in context.core] == [fact.fact_id for fact in core]
    assert "Pixel" in context.text
    assert not {one.fact.fact_id for one in context.relevant} & {fact.fact_id for fact in core}
    again = await engine.client.context("What is my parrot called?", user=engine.user_id)
    assert again.fingerprint == context.fingerprint != ""


async def test_a_relevant_injection_says_why_each_fact_is_in_it(engine: Engine) -> None:
    await engine.tell(engine.conversation(*_SAID))

    reply = await engine.injected(mode="relevant", query="Which coffee?")
    tight = await engine.injected(mode="relevant", query="Which coffee?", char_budget=130)

    assert "black coffee" in reply.text
    assert {one.reason for one in reply.included} <= {"core", "relevant"}
    assert any(one.reason == "relevant" for one in reply.included)
    assert len(tight.text) <= 130
    assert tight.omitted.get("budget", 0) == reply.facts_count - tight.facts_count


async def test_a_fact_that_the_gateway_deletes_is_found_no_more(engine: Engine) -> None:
    await engine.tell(engine.conversation(*_SAID))

    await engine.tables.rows(
        "UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now() "
        "WHERE user_id = %(user)s AND fact_value LIKE '%%Pixel%%' RETURNING fact_id",
        {"user": engine.user_id},
    )

    found = await engine.client.search("parrot called Pixel", user=engine.user_id)
    assert not [one for one in found if "Pixel" in one.fact.fact_value]
    reply = await engine.injected(mode="relevant", query="parrot called Pixel")
    assert "Pixel" not in reply.text
