"""Extraction on the real database: what a model, an embedder or another worker does to it."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.errors import ModelRefusedError, ModelUnavailableError, UnreadableAnswerError
from domain.jobs import JobError, JobOrder
from domain.memory.timeline import Rules
from domain.ports import WindowCandidates
from tests.integration.extraction.scripted import (
    LIMITS,
    RECORD,
    FlakyEmbedder,
    ScriptedExtractor,
    run,
    says,
    worker,
)
from tests.integration.storage.stores import Stores, ended, order_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TALK = ended("talk", "I live in Porto and I am a nurse.")
CITY = ("home_city", "Porto")


async def order(stores: Stores) -> JobOrder:
    return order_of(TALK, await stores.accept(TALK))


async def job(stores: Stores) -> dict[str, object]:
    return dict((await stores.rows("SELECT status, attempts, error, outcome FROM lis.extraction_jobs"))[0])


async def facts(stores: Stores) -> list[tuple[str, str]]:
    rows = await stores.rows("SELECT fact_key, fact_value FROM lis.memory_facts ORDER BY fact_key")
    return [(row["fact_key"], row["fact_value"]) for row in rows]


async def test_what_a_session_said_is_remembered_with_its_cost(stores: Stores) -> None:
    extract = worker(stores, ScriptedExtractor(says(CITY, ("job_title", "nurse"))))

    await run(extract, await order(stores))

    assert await facts(stores) == [("home_city", "Porto"), ("job_title", "nurse")]
    done = await job(stores)
    assert done["status"] == "completed"
    assert isinstance(done["outcome"], dict)
    assert done["outcome"]["model_calls"] == 1


async def test_no_connection_is_held_while_a_model_is_called(stores: Stores) -> None:
    async def reads_the_database() -> WindowCandidates:
        await asyncio.wait_for(stores.rows("SELECT 1 AS one"), timeout=3)
        return says(CITY)

    await run(worker(stores, ScriptedExtractor(reads_the_database)), await order(stores))

    assert await facts(stores) == [CITY]


async def test_an_unreadable_answer_is_a_failed_attempt_and_never_no_facts(stores: Stores) -> None:
    extractor = ScriptedExtractor(UnreadableAnswerError("no provider could be read"))
    extract, wanted = worker(stores, extractor), await order(stores)

    await run(extract, wanted)
    after_one = await job(stores)
    for _ in range(5):
        await run(extract, wanted)

    assert (after_one["status"], after_one["attempts"]) == ("retrying", 1)
    assert (await job(stores))["status"] == "dead"
    assert extractor.calls == LIMITS.attempts
    letters = await stores.rows("SELECT error_class, value FROM lis.dead_letters")
    assert [(row["error_class"], bytes(row["value"])) for row in letters] == [("exhausted", RECORD.value)]


async def test_a_refusal_for_good_is_dead_at_once(stores: Stores) -> None:
    await run(worker(stores, ScriptedExtractor(ModelRefusedError("refused"))), await order(stores))

    assert (await job(stores))["status"] == "dead"


async def test_a_model_that_is_away_costs_no_attempt(stores: Stores) -> None:
    extract = worker(stores, ScriptedExtractor(*[ModelUnavailableError("away")] * 5, says(CITY)))
    wanted = await order(stores)

    for _ in range(5):
        await run(extract, wanted)
    waiting = await job(stores)
    await run(extract, wanted)

    assert (waiting["status"], waiting["attempts"]) == ("retrying", 0)
    assert await facts(stores) == [CITY]


async def test_what_a_model_said_is_kept_while_the_embedder_is_away(stores: Stores) -> None:
    extractor = ScriptedExtractor(says(CITY))
    extract = worker(stores, extractor, embedder=FlakyEmbedder(away=2))
    wanted = await order(stores)

    for _ in range(3):
        await run(extract, wanted)

    assert await facts(stores) == [CITY]
    assert extractor.calls == 1


async def test_a_job_that_hangs_is_cut_by_its_deadline(stores: Stores) -> None:
    async def hangs() -> WindowCandidates:
        await asyncio.sleep(60)
        return says(CITY)

    limits = replace(LIMITS, deadline=timedelta(seconds=0.3))
    extract = worker(stores, ScriptedExtractor(hangs), limits=limits)

    await run(extract, await order(stores))

    assert (await job(stores))["error"] == {"code": "deadline_exceeded", "message": "the job took too long"}


async def test_a_worker_that_lost_its_claim_writes_nothing(stores: Stores) -> None:
    wanted = await order(stores)
    another = worker(stores, ScriptedExtractor(says(("home_city", "Porto"))), name="w2")

    async def is_overtaken() -> WindowCandidates:
        await run(another, wanted)
        return says(("job_title", "nurse"))

    await run(worker(stores, ScriptedExtractor(is_overtaken)), wanted)

    assert await facts(stores) == [CITY]
    assert (await job(stores))["status"] == "completed"


async def test_a_job_that_is_cut_off_is_ordered_again_at_once(stores: Stores) -> None:
    wanted = await order(stores)
    is_asked = asyncio.Event()

    async def never_ends() -> WindowCandidates:
        is_asked.set()
        await asyncio.sleep(60)
        return says(CITY)

    cut = asyncio.create_task(run(worker(stores, ScriptedExtractor(never_ends)), wanted))
    await is_asked.wait()
    cut.cancel()
    await asyncio.wait([cut])
    after = await job(stores)
    await run(worker(stores, ScriptedExtractor(says(CITY)), name="w2"), wanted)

    assert cut.cancelled()
    assert (after["status"], after["attempts"]) == ("queued", 0)
    assert [one["is_later"] for one in await stores.orders()] == [False, False]
    assert await facts(stores) == [CITY]


async def test_an_unforeseen_failure_stops_only_its_own_job(stores: Stores) -> None:
    extract, wanted = worker(stores, ScriptedExtractor(says(CITY))), await order(stores)

    for _ in range(LIMITS.attempts):
        await extract.fail(wanted, RECORD, JobError(code="internal", message="KeyError"))

    assert (await job(stores))["status"] == "dead"


async def test_a_candidate_that_nobody_said_is_dropped_and_counted(stores: Stores) -> None:
    extract = worker(stores, ScriptedExtractor(says(CITY, ("employer", "Acme Rockets"))))

    await run(extract, await order(stores))

    assert await facts(stores) == [CITY]
    outcome = (await job(stores))["outcome"]
    assert isinstance(outcome, dict)
    assert outcome["candidates_dropped"] == {"ungrounded": 1}


async def test_what_rules_gave_in_place_of_a_model_is_not_kept_for_the_next_revision(stores: Stores) -> None:
    extract = worker(stores, ScriptedExtractor(replace(says(CITY), degraded=True)))

    await run(extract, await order(stores))

    assert await facts(stores) == [CITY]
    assert await stores.rows("SELECT 1 AS one FROM lis.session_windows") == []


@pytest.mark.parametrize(("least", "remembered"), [(0.5, True), (0.9, False)])
async def test_the_confidence_that_is_set_decides_what_is_a_fact(
    stores: Stores, least: float, remembered: bool
) -> None:
    unsure = WindowCandidates(candidates=(replace(says(CITY).candidates[0], confidence=0.7),))
    extract = worker(stores, ScriptedExtractor(unsure), rules=Rules(keep=least))

    await run(extract, await order(stores))

    assert (await facts(stores) == [CITY]) is remembered


async def test_a_special_category_is_remembered_for_the_tenant_that_allows_it_alone(stores: Stores) -> None:
    await stores.run(
        "INSERT INTO lis.tenants (tenant_id, allowed_categories) VALUES ('clinic', %s), ('shop', '{}')",
        ["medication"],
    )
    said = says(("medication", "metformin"), ("religion", "a Quaker"))
    for tenant in ("clinic", "shop", "unheard of"):
        talk = ended(tenant, "I take metformin. I am a Quaker.", tenant=tenant)
        await run(worker(stores, ScriptedExtractor(said)), order_of(talk, await stores.accept(talk)))

    rows = await stores.rows("SELECT tenant_id, fact_value FROM lis.memory_facts")
    assert [tuple(row.values()) for row in rows] == [("clinic", "metformin")]
