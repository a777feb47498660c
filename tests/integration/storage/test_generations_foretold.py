"""Whatever two generations say: the difference is what the promotion writes, and that is the fold."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.candidates import Candidate
from domain.conversation import NIL_AVATAR
from domain.memory.assertions import Scope
from domain.memory.facts import FactRow
from domain.memory.reconcile import Occasion, Stored, reconcile
from domain.memory.stances import Stance
from domain.stores import FactsQuery
from storage.evidence_rows import assertion_from_row
from tests.integration.extraction.playing import forget
from tests.integration.storage.replaying import again, compared, memory, promoted, redo, start
from tests.integration.storage.stores import ANA, MARCH, TENANT, Stores, candidate, ended

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_SCOPE: Final = Scope(tenant=TENANT, user=str(ANA.user_id), avatar=str(NIL_AVATAR))
_SAID: Final = st.lists(
    st.tuples(
        st.sampled_from(["home_city", "pet", "likes"]),
        st.sampled_from(["porto", "lyon", "tea"]),
        st.sampled_from([0.4, 0.6, 0.9]),
        st.sampled_from([Stance.HOLDS, Stance.DENIES, Stance.HELD, Stance.FORGETS]),
    ),
    max_size=3,
)
_SESSION: Final = st.tuples(_SAID, st.none() | _SAID, st.booleans())


def _candidates(said: Sequence[tuple[str, str, float, Stance]], number: int) -> list[Candidate]:
    at = MARCH + timedelta(days=number)
    return [
        candidate(key, value, confidence=confidence, stance=stance, at=at)
        for key, value, confidence, stance in said
    ]


@settings(
    max_examples=8 if settings.get_current_profile_name() == "quick" else 200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(_SESSION, min_size=1, max_size=4))
async def test_the_difference_foretells_the_promotion_and_the_promotion_is_the_fold(
    stores: Stores, sessions: list[tuple[list[tuple[str, str, float, Stance]], object, bool]]
) -> None:
    await forget(stores)
    await stores.run("DELETE FROM lis.replays")
    await start(stores)
    for number, (live, shadow, is_revised) in enumerate(sessions):
        at = MARCH + timedelta(days=number)
        conversation = ended(f"s{number}", "hello", at=at)
        await stores.remember(conversation, *_candidates(live, number))
        if isinstance(shadow, list):
            await redo(stores, again(conversation), *_candidates(shadow, number))
        if is_revised:
            await stores.remember(ended(f"s{number}", "hello", "more", at=at), *_candidates(live, number))
    before = await memory(stores)
    facts = await _facts(stores)
    foretold = [one async for one in compared(stores)]
    assert await memory(stores) == before

    await promoted(stores, partial=True)

    after, now = await memory(stores), await _facts(stores)
    expected = dict(facts)
    for one in (fact for scope in foretold for fact in scope.facts):
        assert one.before == facts.get(one.fact_id)
        if one.after is None:
            del expected[one.fact_id]
        else:
            expected[one.fact_id] = one.after
    assert now == expected
    assert {key: row.revision for key, row in now.items()} == {
        key: row.revision for key, row in expected.items()
    }
    written = [one for one in after["versions"] if one not in before["versions"]]
    versions = [version for scope in foretold for version in scope.projected.versions]
    assert {(one["fact_id"], one["revision"], one["change"]) for one in written} == {
        (one.fact_id, one.revision, one.change) for one in versions
    }
    told = sum(len(scope.projected.events) for scope in foretold)
    assert len(after["told"]) - len(before["told"]) == told
    assert {row.fact_id: row for row in await _folded(stores)} == now


async def _facts(stores: Stores) -> Mapping[UUID, FactRow]:
    page = await stores.reads().facts(FactsQuery(tenant_id=TENANT, user=ANA, statuses=frozenset(), limit=500))
    return {one.fact_id: one for one in page.items}


async def _folded(stores: Stores) -> Sequence[FactRow]:
    """Fold what serves from nothing."""
    rows = await stores.rows(
        "SELECT a.*, a.session_id::text AS session_id FROM lis.assertions AS a JOIN lis.sessions AS s "
        "ON s.session_id = a.session_id AND s.serving_generation = a.generation"
    )
    assertions = [assertion_from_row(_SCOPE, row) for row in rows]
    return reconcile(Stored(scope=_SCOPE, assertions=assertions), Occasion()).facts
