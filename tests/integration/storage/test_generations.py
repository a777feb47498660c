"""Sessions done again under a label: beside what serves, or in its place."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from domain.arrivals import Verdict
from domain.conversation import NIL_AVATAR
from domain.errors import ClaimLostError
from domain.jobs import JobOutcome
from domain.replays import ReplayMode
from tests.integration.storage.replaying import (
    LABEL,
    again,
    memory,
    redo,
)
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    TENANT,
    Stores,
    candidate,
    ended,
    extracted,
    order_of,
    session_id,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

S1 = ended("s1", "I live in Porto")


async def _serving(stores: Stores) -> str:
    return str((await stores.rows("SELECT serving_generation FROM lis.sessions"))[0]["serving_generation"])


async def test_a_shadow_changes_nothing_that_anybody_reads(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"), candidate("likes", "tea", confidence=0.4))
    before = await memory(stores)
    ranked = await stores.reads().ranked(TENANT, ANA, NIL_AVATAR, limit=10, as_of=None)
    job = await stores.reads().job(TENANT, job_id=None, session_id=session_id("s1"))

    claim = await stores.claimed(again(S1))
    assert await stores.reads().ranked(TENANT, ANA, NIL_AVATAR, limit=10, as_of=None) == ranked
    done = await stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), JobOutcome())

    assert await memory(stores) == before
    assert await stores.reads().job(TENANT, job_id=None, session_id=session_id("s1")) == job
    assert done.outcome is not None
    assert (done.outcome.facts_created, done.outcome.candidates_held) == (0, 0)
    said = await stores.rows("SELECT generation, value FROM lis.assertions ORDER BY generation, value")
    assert [(one["generation"], one["value"]) for one in said] == [
        (LABEL, "dog"),
        ("live", "Porto"),
        ("live", "tea"),
    ]


async def test_a_replay_of_the_same_session_under_the_same_label_is_a_duplicate(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))

    verdicts = [(await stores.accept(again(S1))).verdict for _ in range(3)]

    assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.DUPLICATE]
    jobs = await stores.rows(
        "SELECT replay_id, replay_mode FROM lis.extraction_jobs WHERE generation <> 'live'"
    )
    assert [dict(one) for one in jobs] == [{"replay_id": LABEL, "replay_mode": "shadow"}]


async def test_a_shadow_of_other_content_does_nothing(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    before = await memory(stores)
    longer = replace(again(S1), messages=ended("s1", "I live in Porto", "and in Lyon").messages)

    assert (await stores.accept(longer)).verdict is Verdict.CONFLICT
    assert await memory(stores) == before


async def test_a_session_that_nobody_knew_is_stored_and_can_be_filled_in_later(stores: Stores) -> None:
    unknown = replace(again(S1), messages=S1.messages)
    await redo(stores, unknown, candidate("pet", "dog"))
    assert await stores.values() == {}

    await stores.remember(S1, candidate("home_city", "Porto"))
    assert await stores.values() == {"Porto": "active"}


async def test_a_reprocessed_session_serves_with_the_commit_of_its_job(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"), candidate("pet", "dog"))

    await redo(stores, again(S1, mode=ReplayMode.REPROCESS), candidate("home_city", "Lyon"))

    assert await _serving(stores) == LABEL
    assert await stores.values() == {"Lyon": "active"}
    jobs = await stores.rows("SELECT replaced_generation FROM lis.extraction_jobs WHERE generation <> 'live'")
    assert jobs[0]["replaced_generation"] == "live"
    assert len(await stores.rows("SELECT 1 FROM lis.assertions WHERE generation = 'live'")) == 2


async def test_what_arrives_after_a_reprocess_is_about_the_generation_that_serves(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    await redo(stores, again(S1, mode=ReplayMode.REPROCESS), candidate("home_city", "Lyon"))

    assert (await stores.accept(S1)).verdict is Verdict.DUPLICATE
    fill = replace(S1, replay_mode=ReplayMode.FILL)
    assert (await stores.accept(fill)).verdict is Verdict.DUPLICATE
    longer = ended("s1", "I live in Porto", "I have a dog")
    await stores.remember(longer, candidate("pet", "dog"))

    assert await stores.values() == {"dog": "active"}
    assert await _serving(stores) == LABEL


@pytest.mark.parametrize("is_label_first", [True, False])
async def test_a_revision_under_way_outdates_the_jobs_of_every_generation(
    stores: Stores, is_label_first: bool
) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    outdated = await stores.claimed(again(S1, mode=ReplayMode.REPROCESS))
    longer = ended("s1", "I live in Porto", "I moved to Lyon")
    accepted = await stores.accept(longer)

    with pytest.raises(ClaimLostError):
        await stores.jobs().commit(outdated, extracted(outdated, candidate("pet", "dog")), JobOutcome())
    orders = [outdated.order, order_of(longer, accepted)]
    for order in orders if is_label_first else reversed(orders):
        claim = await stores.jobs().claim(order, deadline=DEADLINE)
        assert claim is not None
        assert len(claim.session.messages) == 2
        value = "Lyon" if order.generation == LABEL else "Lisbon"
        await stores.jobs().commit(claim, extracted(claim, candidate("home_city", value)), JobOutcome())

    assert await stores.values() == {"Lyon": "active"}
    assert await _serving(stores) == LABEL


async def test_a_replaced_generation_that_is_done_again_does_not_come_back(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    for label in ("one", "two"):
        await redo(stores, again(S1, mode=ReplayMode.REPROCESS, label=label), candidate("home_city", label))
    await stores.run("UPDATE lis.extraction_jobs SET status = 'queued' WHERE generation = 'one'")
    job = (await stores.rows("SELECT job_id, user_id FROM lis.extraction_jobs WHERE generation = 'one'"))[0]
    order = replace(
        order_of(S1, await stores.accept(S1)), job_id=job["job_id"], generation="one", user_id=job["user_id"]
    )
    claim = await stores.jobs().claim(order, deadline=DEADLINE)
    assert claim is not None
    await stores.jobs().commit(claim, extracted(claim, candidate("home_city", "one")), JobOutcome())

    assert await stores.values() == {"two": "active"}


async def test_a_reprocess_and_revisions_at_the_same_time_do_not_deadlock(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    claim = await stores.claimed(again(S1, mode=ReplayMode.REPROCESS))
    texts = ["I live in Porto"]

    async def revise() -> None:
        for n in range(5):
            texts.append(f"more {n}")
            await stores.accept(ended("s1", *texts))

    async def commit() -> None:
        with suppress(ClaimLostError):
            await stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), JobOutcome())

    async with asyncio.timeout(20):
        await asyncio.gather(commit(), revise())

    rows = await stores.rows("SELECT revision FROM lis.sessions")
    assert [one["revision"] for one in rows] == [6]
