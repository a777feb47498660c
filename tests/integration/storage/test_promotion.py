"""A shadow compared with what serves, promoted, and removed."""

import asyncio
from uuid import uuid4

import pytest
from psycopg import AsyncConnection
from psycopg.errors import RaiseException

from domain.conversation import NIL_AVATAR, UserRef
from domain.errors import ClaimLostError, InvalidInputError, NotFoundError
from domain.generations import Chosen, NotPromotableError, PromoteGeneration
from domain.jobs import JobOutcome
from domain.memory.assertions import Scope
from domain.memory.changes import Kind
from domain.replays import ReplayMode, ReplayStatus
from storage.commit_writes import lock_key
from tests.integration.storage.replaying import (
    LABEL,
    again,
    compared,
    generations,
    memory,
    promoted,
    redo,
    start,
)
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    MARCH,
    TENANT,
    Stores,
    candidate,
    ended,
    extracted,
    session_id,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

S1 = ended("s1", "I live in Porto")


async def _serving(stores: Stores) -> str:
    return str((await stores.rows("SELECT serving_generation FROM lis.sessions"))[0]["serving_generation"])


async def test_the_difference_names_what_comes_goes_and_changes_with_its_evidence(stores: Stores) -> None:
    await stores.remember(
        S1, candidate("home_city", "Porto"), candidate("pet", "dog"), candidate("likes", "tea")
    )
    await start(stores)
    await redo(
        stores,
        again(S1),
        candidate("home_city", "Lyon", excerpt="I live in Porto"),
        candidate("likes", "tea", spec_version="2"),
        candidate("pet", "dog", confidence=0.8),
    )
    before = await memory(stores)

    found = [one async for one in compared(stores)]

    assert len(found) == 1
    assert (found[0].added, found[0].gone, found[0].changed, found[0].revised_provenance) == (1, 1, 1, 1)
    added = next(one for one in found[0].facts if one.before is None)
    assert added.after is not None
    assert added.after.fact_value == "Lyon"
    assert [(one.generation, one.excerpt, one.message_ids) for one in added.evidence_after] == [
        (LABEL, "I live in Porto", ("m0",))
    ]
    gone = next(one for one in found[0].facts if one.after is None)
    assert gone.change is Kind.ERASED
    assert [one.generation for one in gone.evidence_before] == ["live"]
    assert await memory(stores) == before


async def test_a_promotion_writes_what_the_difference_said(stores: Stores) -> None:
    for n in range(3):
        conversation = ended(f"s{n}", "hello", user=UserRef(user_id=uuid4()))
        await stores.remember(conversation, candidate("home_city", "Porto"), candidate("pet", "dog"))
        await redo(stores, again(conversation), candidate("home_city", "Lyon"), candidate("pet", "dog"))
    await start(stores)
    told = len((await memory(stores))["told"])
    foretold = [one async for one in compared(stores)]

    progress = await promoted(stores)

    after = await memory(stores)
    assert (progress.scopes, progress.total, progress.facts) == (3, 3, sum(len(d.facts) for d in foretold))
    versions = {
        (v["fact_id"], v["revision"], v["change"]) for v in after["versions"] if v["reason"] == "promote"
    }
    assert versions == {(v.fact_id, v.revision, v.change) for one in foretold for v in one.projected.versions}
    assert len(after["told"]) - told == sum(len(one.projected.events) for one in foretold)
    assert await stores.values() == {"Lyon": "active", "dog": "active"}
    assert [one async for one in compared(stores)] == []
    assert (await promoted(stores)).scopes == 0
    assert await memory(stores) == after
    found = await generations(stores).find(LABEL)
    assert found is not None
    assert found.status is ReplayStatus.PROMOTED


async def test_a_promotion_cut_off_between_scopes_goes_on_where_it_stopped(stores: Stores) -> None:
    for n in range(3):
        conversation = ended(f"s{n}", "hello", user=UserRef(user_id=uuid4()))
        await stores.remember(conversation, candidate("home_city", "Porto"))
        await redo(stores, again(conversation), candidate("home_city", "Lyon"))
    await start(stores)

    def cut(_progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await PromoteGeneration(store=generations(stores))(LABEL, partial=False, on_scope=cut)
    half = await stores.rows("SELECT serving_generation AS g, count(*) AS n FROM lis.sessions GROUP BY 1")
    assert {one["g"]: one["n"] for one in half} == {"live": 2, LABEL: 1}

    assert (await promoted(stores)).scopes == 2
    assert await stores.values() == {"Lyon": "active"}
    assert (await stores.events()).count("memory.fact.erased") == 3


async def test_a_replay_that_is_not_complete_is_promoted_only_in_part_and_on_demand(stores: Stores) -> None:
    kept, moved = ended("s1", "hello"), ended("s2", "hello")
    await stores.remember(kept, candidate("home_city", "Porto"))
    await redo(stores, again(kept), candidate("home_city", "Lyon"))
    await stores.remember(moved, candidate("pet", "dog"))
    await redo(stores, again(moved), candidate("pet", "cat"))
    await start(stores)
    await stores.remember(ended("s1", "hello", "more"), candidate("home_city", "Faro"))

    with pytest.raises(NotPromotableError, match="1 changed since"):
        await promoted(stores)
    standing = await generations(stores).standing(LABEL, Chosen())
    assert (standing.ready, standing.changed) == (1, 1)
    assert standing.named == {"changed": (session_id("s1"),)}
    assert (await promoted(stores, partial=True)).scopes == 1

    assert await stores.values() == {"Faro": "active", "cat": "active"}


async def test_a_commit_and_a_promotion_of_one_scope_end_as_one_after_the_other(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    await redo(stores, again(S1), candidate("home_city", "Lyon"))
    await start(stores)
    claims = [await stores.claimed(ended(f"t{n}", "hello", at=MARCH.replace(day=2 + n))) for n in range(6)]

    async def commit() -> None:
        for n, claim in enumerate(claims):
            at = MARCH.replace(day=2 + n)
            await stores.jobs().commit(
                claim, extracted(claim, candidate("pet", f"dog {n}", at=at)), JobOutcome()
            )

    await asyncio.gather(commit(), promoted(stores))

    values = await stores.values()
    assert values["Lyon"] == "active"
    assert {one for one in values if one.startswith("dog")} == {f"dog {n}" for n in range(6)}
    scopes = await stores.rows("SELECT events FROM lis.scopes")
    assert scopes[0]["events"] == len((await memory(stores))["told"])


async def test_a_promotion_waits_for_whoever_writes_the_scope(stores: Stores, migrated_url: str) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    await redo(stores, again(S1), candidate("home_city", "Lyon"))
    await start(stores)
    key = lock_key(Scope(tenant=TENANT, user=str(ANA.user_id), avatar=str(NIL_AVATAR)))
    async with await AsyncConnection.connect(migrated_url) as writer:
        await writer.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        promotion = asyncio.create_task(promoted(stores))
        done, _ = await asyncio.wait([promotion], timeout=0.5)
        assert not done
        assert await _serving(stores) == "live"
        await writer.rollback()

    assert (await promotion).scopes == 1


async def test_a_discarded_shadow_leaves_nothing_and_its_orders_find_nothing(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    before = await memory(stores)
    claim = await stores.claimed(again(S1))
    await start(stores)

    assert await generations(stores).discard(LABEL) == 1
    assert await generations(stores).discard(LABEL) == 0

    with pytest.raises(ClaimLostError):
        await stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), JobOutcome())
    assert await stores.jobs().claim(claim.order, deadline=DEADLINE) is None
    assert await memory(stores) == before
    assert await stores.rows("SELECT 1 FROM lis.extraction_jobs WHERE generation <> 'live'") == []


async def test_what_serves_is_never_removed_and_what_it_replaced_can_be(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    await redo(stores, again(S1), candidate("home_city", "Lyon"))
    await start(stores)
    await promoted(stores)
    before = await memory(stores)

    with pytest.raises(NotPromotableError):
        await generations(stores).discard(LABEL)
    assert await generations(stores).drop_replaced(LABEL) == 1

    assert await memory(stores) == before
    said = await stores.rows("SELECT DISTINCT generation FROM lis.assertions")
    assert [one["generation"] for one in said] == [LABEL]


async def test_a_read_during_a_promotion_sees_the_old_facts_of_a_user_or_the_new_ones(stores: Stores) -> None:
    users = [UserRef(user_id=uuid4()) for _ in range(8)]
    for n, user in enumerate(users):
        conversation = ended(f"s{n}", "hello", user=user)
        old = [candidate("home_city", "Porto"), *(candidate("likes", f"old {k}") for k in range(4))]
        new = [candidate("home_city", "Lyon"), *(candidate("likes", f"new {k}") for k in range(4))]
        await stores.remember(conversation, *old)
        await redo(stores, again(conversation), *new)
    await start(stores)
    promotion = asyncio.create_task(promoted(stores))
    seen: set[bool] = set()

    while not promotion.done():
        for user in users:
            ranked = await stores.reads().ranked(TENANT, user, NIL_AVATAR, limit=20, as_of=None)
            is_old = {one.value == "Porto" or one.value.startswith("old") for one in ranked.facts}
            assert len(ranked.facts) == 5
            assert len(is_old) == 1
            seen |= is_old

    assert (await promotion).scopes == 8
    assert seen == {True, False}


async def test_what_the_gateway_deleted_stays_deleted_through_a_promotion(stores: Stores) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"), candidate("pet", "dog"))
    await redo(stores, again(S1), candidate("home_city", "Porto"), candidate("pet", "cat"))
    await start(stores)
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted' WHERE fact_value = 'Porto'")
    foretold = [one async for one in compared(stores)]

    await promoted(stores)

    assert await stores.values() == {"Porto": "deleted", "cat": "active"}
    written = await stores.rows("SELECT fact_id FROM lis.memory_versions WHERE reason = 'promote'")
    assert {one["fact_id"] for one in written} == {one.fact_id for one in foretold[0].facts}


@pytest.mark.parametrize("status", ["running", "paused"])
async def test_a_replay_that_is_still_ordering_is_not_promoted_as_a_whole(
    stores: Stores, status: str
) -> None:
    await start(stores, status=status)

    with pytest.raises(NotPromotableError, match=status):
        await promoted(stores)


async def test_only_a_shadow_is_compared_and_promoted(stores: Stores) -> None:
    with pytest.raises(NotFoundError):
        await promoted(stores)
    await start(stores, mode="reprocess")
    with pytest.raises(InvalidInputError, match="reprocess"):
        await promoted(stores)


@pytest.mark.parametrize("mode", [ReplayMode.SHADOW, ReplayMode.REPROCESS])
async def test_facts_and_the_generation_that_serves_change_together_or_not_at_all(
    stores: Stores, mode: ReplayMode
) -> None:
    await stores.remember(S1, candidate("home_city", "Porto"))
    claim = await stores.claimed(again(S1, mode=mode))
    lyon = extracted(claim, candidate("home_city", "Lyon"))
    if mode is ReplayMode.SHADOW:
        await stores.jobs().commit(claim, lyon, JobOutcome())
    await start(stores)
    await stores.run(
        "CREATE FUNCTION lis.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'not now'; END $$"
    )
    await stores.run(
        "CREATE TRIGGER refuse BEFORE UPDATE OF serving_generation ON lis.sessions "
        "FOR EACH ROW EXECUTE FUNCTION lis.refuse()"
    )
    before = await memory(stores)

    change = (
        promoted(stores) if mode is ReplayMode.SHADOW else stores.jobs().commit(claim, lyon, JobOutcome())
    )
    with pytest.raises(RaiseException):
        await change

    assert await memory(stores) == before
