"""Reads: one scope, one round trip."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from domain.conversation import NIL_AVATAR, UserRef
from domain.errors import InvalidInputError
from domain.stores import FactsQuery
from storage.pool import open_database
from tests.integration.storage.counting import Counted, CountingConnection
from tests.integration.storage.stores import (
    ANA,
    MARCH,
    TENANT,
    Stores,
    candidate,
    ended,
    session_id,
    somebody,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

DAY = timedelta(days=1)


async def values(stores: Stores, user: UserRef = ANA, *, as_of: datetime | None = None) -> list[str]:
    read = await stores.reads().ranked(TENANT, user, NIL_AVATAR, limit=100, as_of=as_of)
    return [one.value for one in read.facts]


async def test_the_best_facts_come_first(stores: Stores) -> None:
    await stores.remember(
        ended("s", "hello"),
        candidate("likes", "tea", confidence=0.7),
        candidate("likes", "chess", confidence=0.95),
        candidate("likes", "rain", confidence=0.7, at=MARCH + timedelta(minutes=5)),
    )

    assert await values(stores) == ["chess", "rain", "tea"]


async def test_a_fact_past_its_time_is_left_out_before_any_sweep(stores: Stores) -> None:
    await stores.remember(
        ended("s", "hello"),
        candidate("likes", "tea"),
        candidate("likes", "Lima", expires_at=MARCH + 30 * DAY),
    )

    assert await values(stores) == ["tea"]
    page = await stores.reads().facts(FactsQuery(tenant_id=TENANT, user=ANA, statuses=frozenset({"expired"})))
    assert [one.fact_value for one in page.items] == ["Lima"]


async def test_what_was_true_then_is_read_as_of_then(stores: Stores) -> None:
    for name, city, day in (("a", "Porto", 0), ("b", "Lyon", 10)):
        at = MARCH + day * DAY
        await stores.remember(ended(name, "hello", at=at), candidate("home_city", city, at=at))

    assert await values(stores) == ["Lyon"]
    assert await values(stores, as_of=MARCH + 5 * DAY) == ["Porto"]
    assert await values(stores, as_of=MARCH - DAY) == []


async def test_a_user_never_seen_reads_empty_and_is_not_made(stores: Stores) -> None:
    read = await stores.reads().ranked(
        TENANT, UserRef(external_user_id="who"), NIL_AVATAR, limit=10, as_of=None
    )

    assert (read.user_id, read.facts, read.pending) == (None, (), ())
    assert await stores.rows("SELECT 1 FROM lis.proxy_users") == []


async def test_sessions_that_are_not_remembered_yet_are_named(stores: Stores) -> None:
    visitor = UserRef(external_user_id="v")
    await stores.accept(ended("s", "hello", user=visitor))
    read = await stores.reads().ranked(TENANT, visitor, NIL_AVATAR, limit=10, as_of=None)

    assert [(one.session_id, one.status) for one in read.pending] == [(session_id("s"), "queued")]


async def test_nobody_reads_the_memory_of_another(stores: Stores) -> None:
    remembered = await stores.remember(ended("s", "hello"), candidate("likes", "tea"))
    reads, user_id = stores.reads(), ANA.user_id
    assert user_id is not None
    listed = FactsQuery(tenant_id=TENANT, user=ANA, statuses=frozenset())
    strangers = [
        (await reads.ranked("other", ANA, NIL_AVATAR, limit=10, as_of=None)).facts,
        (await reads.ranked(TENANT, somebody(), NIL_AVATAR, limit=10, as_of=None)).facts,
        (await reads.ranked(TENANT, ANA, uuid4(), limit=10, as_of=None)).facts,
        (await reads.facts(replace(listed, tenant_id="other"))).items,
        (await reads.facts(replace(listed, avatar_id=uuid4()))).items,
        await reads.session_facts("other", user_id, session_id("s")),
        await reads.session_facts(TENANT, uuid4(), session_id("s")),
    ]

    assert [len(one) for one in strangers] == [0] * 7
    assert await reads.job("other", job_id=None, session_id=session_id("s")) is None
    assert await reads.job("other", job_id=remembered.job_id, session_id=None) is None
    assert len(await reads.session_facts(TENANT, user_id, session_id("s"))) == 1


async def test_pages_of_facts_join_without_a_gap(stores: Stores) -> None:
    said = [candidate("likes", f"thing {n}", at=MARCH + timedelta(minutes=n // 2)) for n in range(7)]
    await stores.remember(ended("s", "hello"), *said)
    found: list[str] = []
    cursor: str | None = None
    query = FactsQuery(tenant_id=TENANT, user=ANA, categories=frozenset({"fact"}), limit=2)
    for _ in range(4):
        page = await stores.reads().facts(replace(query, cursor=cursor))
        found += [one.fact_value for one in page.items]
        cursor = page.next_cursor

    assert cursor is None
    assert sorted(found) == [f"thing {n}" for n in range(7)]
    with pytest.raises(InvalidInputError):
        await stores.reads().facts(replace(query, cursor="forged"))


async def test_a_stamp_moves_no_index_entry_and_is_not_an_event(stores: Stores) -> None:
    await stores.remember(ended("s", "hello"), candidate("likes", "tea"))
    facts = await stores.rows("SELECT user_id, fact_id, revision FROM lis.memory_facts")
    events = await stores.events()
    now = datetime.now(UTC)
    await stores.last_seen().stamp({facts[0]["user_id"]: [facts[0]["fact_id"]]}, at=now)

    after = await stores.rows("SELECT last_seen_at, revision FROM lis.memory_facts")
    assert (after[0]["last_seen_at"], after[0]["revision"]) == (now, 1)
    assert await stores.events() == events
    indexed = await stores.rows("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%%last_seen_at%%'")
    assert indexed == []


async def test_a_ranked_read_is_one_statement(migrated_url: str) -> None:
    async with open_database(migrated_url, max_size=1, connection_class=CountingConnection) as database:
        stores = Stores(database=database)
        await stores.remember(ended("s", "hello"), candidate("likes", "tea"))
        counted = Counted.start(CountingConnection)
        found = await values(stores)
        cost = counted.stop()

    assert found == ["tea"]
    assert (cost.statements, cost.round_trips) == (1, 1)
