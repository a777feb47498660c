"""The commit: all or nothing, once, and only by who holds the job."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, LiteralString

import pytest

from domain.conversation import NIL_AVATAR
from domain.errors import ClaimLostError
from domain.jobs import JobOutcome, JobStatus
from domain.memory.assertions import Scope, Stance
from domain.ports import RecallText
from domain.stores import FactsQuery
from storage.commit_read_sql import (
    AS_PROJECTION,
    HOLD_FACTS,
    HOLD_FACTS_AGAIN,
    READ_ASSERTIONS,
    READ_ASSERTIONS_AGAIN,
    READ_REST,
    READ_REST_AGAIN,
)
from storage.commit_reads import Touched
from storage.pool import open_database
from tests.integration.storage.counting import Counted, CountingConnection
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    MARCH,
    TENANT,
    Stores,
    candidate,
    ended,
    extracted,
    order_of,
    somebody,
    words_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

DAY = timedelta(days=1)
FACTS = (
    "SELECT fact_id, fact_value, status, valid::text AS valid, reinforced, revision, names, superseded_by,"
    " updated_at FROM lis.memory_facts ORDER BY fact_id"
)


async def test_a_session_becomes_facts_recall_versions_and_events(stores: Stores) -> None:
    job = await stores.remember(
        ended("s", "I live in Porto"), candidate("home_city", "Porto"), candidate("pet", "dog")
    )

    assert (job.status, job.outcome and job.outcome.facts_created) == (JobStatus.COMPLETED, 2)
    assert await stores.values() == {"Porto": "active", "dog": "active"}
    assert await stores.events() == [
        "memory.job.queued",
        "memory.job.started",
        "memory.fact.created",
        "memory.fact.created",
        "memory.job.completed",
    ]
    recall = await stores.rows("SELECT status, embedding IS NOT NULL AS has FROM lis.recall WHERE kind = 0")
    assert [(one["status"], one["has"]) for one in recall] == [(0, True), (0, True)]
    versions = await stores.rows("SELECT change, number FROM lis.memory_versions ORDER BY number")
    assert [(one["change"], one["number"]) for one in versions] == [("created", 1), ("created", 2)]
    windows = await stores.rows("SELECT digest FROM lis.session_windows")
    assert len(windows) == 1


async def test_a_fact_read_back_is_the_fact_that_was_told(stores: Stores) -> None:
    await stores.remember(ended("s", "I live in Porto"), candidate("home_city", "Porto", confidence=0.8765))
    page = await stores.reads().facts(FactsQuery(tenant_id=TENANT, user=ANA, statuses=frozenset()))

    fact = page.items[0]
    assert (fact.fact_value, fact.confidence, fact.intervals) == ("Porto", 0.8765, ((MARCH, None),))
    assert fact.created_at is not None


async def test_the_same_session_again_makes_no_new_revision(stores: Stores) -> None:
    await stores.remember(ended("s", "I live in Porto"), candidate("home_city", "Porto"))
    before = await stores.rows(FACTS)
    revised = ended("s", "I live in Porto", at=MARCH, message_count=1)
    again = await stores.claimed(ended("s", "I live in Porto", "Bye"))
    job = await stores.jobs().commit(again, extracted(again, candidate("home_city", "Porto")), JobOutcome())

    assert job.revision == 2
    assert await stores.rows(FACTS) == before
    assert revised.session_id == again.session.session_id
    assert (await stores.events()).count("memory.fact.created") == 1


async def test_what_a_session_said_twice_is_one_piece_of_evidence(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    once = extracted(claim, candidate("home_city", "Porto"))
    twice = replace(once, assertions=(*once.assertions, *once.assertions))
    await stores.jobs().commit(claim, twice, JobOutcome())

    assert len(await stores.rows("SELECT 1 FROM lis.assertions")) == 1
    found = await stores.rows("SELECT fact_value, reinforced FROM lis.memory_facts")
    assert [(one["fact_value"], one["reinforced"]) for one in found] == [("Porto", 0)]


async def test_a_revision_takes_back_what_the_session_no_longer_says(stores: Stores) -> None:
    await stores.remember(ended("s", "I live in Porto"), candidate("home_city", "Porto"))
    await stores.remember(ended("s", "I live in Porto", "no, sorry"), candidate("pet", "dog"))

    assert await stores.values() == {"dog": "active"}
    assert "memory.fact.erased" in await stores.events()
    recall = await stores.rows("SELECT content FROM lis.recall WHERE kind = 0")
    assert len(recall) == 1


async def test_any_order_of_sessions_gives_the_same_facts(stores: Stores, own_stores: Stores) -> None:
    days = [("a", "Porto", 0), ("b", "Lyon", 2), ("c", "Porto", 4)]
    for where, order in ((stores, days), (own_stores, [days[2], days[0], days[1]])):
        for name, city, day in order:
            moment = MARCH + day * DAY
            await where.remember(
                ended(name, f"I live in {city}", at=moment), candidate("home_city", city, at=moment)
            )

    def shown(rows: Any) -> Any:
        left_out = ("revision", "updated_at")
        return [{key: value for key, value in row.items() if key not in left_out} for row in rows]

    assert shown(await stores.rows(FACTS)) == shown(await own_stores.rows(FACTS))
    assert await stores.values() == {"Porto": "active", "Lyon": "superseded"}


async def test_a_lost_claim_writes_nothing(stores: Stores) -> None:
    conversation = ended("s", "I live in Porto")
    accepted = await stores.accept(conversation)
    order = order_of(conversation, accepted)
    zombie = await stores.jobs("w1").claim(order, deadline=DEADLINE)
    owner = await stores.jobs("w2").claim(order, deadline=DEADLINE)
    assert zombie is not None
    assert owner is not None

    with pytest.raises(ClaimLostError):
        await stores.jobs().commit(zombie, extracted(zombie, candidate("pet", "cat")), JobOutcome())
    with pytest.raises(ClaimLostError):
        await stores.jobs().keep_windows(zombie, extracted(zombie).windows)
    await stores.jobs().put_back(zombie, due_in=DAY, error=None, counted=True)
    await stores.jobs().gate(zombie, "empty")
    await stores.jobs().commit(owner, extracted(owner, candidate("pet", "dog")), JobOutcome())
    with pytest.raises(ClaimLostError):
        await stores.jobs().commit(zombie, extracted(zombie, candidate("pet", "cat")), JobOutcome())

    assert await stores.values() == {"dog": "active"}
    assert (owner.attempt, owner.fence) == (1, 2)


async def test_a_revision_that_arrives_meanwhile_takes_the_job_away(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    await stores.accept(ended("s", "I live in Porto", "I have a dog"))

    with pytest.raises(ClaimLostError):
        await stores.jobs().commit(claim, extracted(claim, candidate("home_city", "Porto")), JobOutcome())


async def test_a_lost_claim_in_a_batch_stops_only_itself(stores: Stores) -> None:
    jobs = stores.jobs()
    claims = [await stores.claimed(ended(f"s{n}", "I live in Porto", user=somebody())) for n in range(6)]
    order = claims[2].order
    await stores.jobs("w2").claim(order, deadline=DEADLINE)
    results = await asyncio.gather(
        *(jobs.commit(one, extracted(one, candidate("pet", "dog")), JobOutcome()) for one in claims),
        return_exceptions=True,
    )

    assert [isinstance(one, ClaimLostError) for one in results] == [n == 2 for n in range(6)]
    assert len(await stores.rows("SELECT 1 FROM lis.memory_facts")) == 5


async def test_whatever_one_job_does_does_not_reach_its_neighbours(stores: Stores) -> None:
    def tokenizer(text: str, language: str | None) -> RecallText:
        if "snake" in text:
            raise RuntimeError("a bug")
        return words_of(text, language)

    jobs = stores.jobs(tokenizer=tokenizer)
    claims = [await stores.claimed(ended(f"s{n}", "hello", user=somebody())) for n in range(4)]
    results = await asyncio.gather(
        *(
            jobs.commit(one, extracted(one, candidate("pet", "snake" if n == 2 else "dog")), JobOutcome())
            for n, one in enumerate(claims)
        ),
        return_exceptions=True,
    )

    assert [isinstance(one, RuntimeError) for one in results] == [False, False, True, False]
    assert len(await stores.rows("SELECT 1 FROM lis.memory_facts")) == 3


async def test_two_workers_on_one_scope_end_as_one_after_the_other(stores: Stores) -> None:
    claims = [await stores.claimed(ended(f"s{n}", "hello", at=MARCH + n * DAY)) for n in range(8)]
    workers = [stores.jobs(f"w{n}") for n in range(4)]
    await asyncio.gather(
        *(
            workers[n % 4].commit(
                one,
                extracted(one, candidate("pet", f"dog {n}"), candidate("home_city", "Porto")),
                JobOutcome(),
            )
            for n, one in enumerate(claims)
        )
    )

    found = await stores.rows("SELECT fact_value, reinforced FROM lis.memory_facts WHERE slot LIKE 'home%%'")
    assert [(one["fact_value"], one["reinforced"]) for one in found] == [("Porto", 7)]
    scopes = await stores.rows("SELECT events FROM lis.scopes")
    notices = [one for one in await stores.events() if not one.startswith("memory.job")]
    assert scopes[0]["events"] == len(notices)


async def test_no_connection_is_held_between_claim_and_commit(migrated_url: str) -> None:
    async with open_database(migrated_url, max_size=1, timeout=2) as database:
        stores = Stores(database=database)
        claims = [await stores.claimed(ended(f"s{n}", "hello", user=somebody())) for n in range(3)]
        idle = await stores.rows(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%'"
        )
        for claim in claims:
            await stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), JobOutcome())

    assert idle[0]["n"] == 0


@pytest.mark.parametrize(
    "statement",
    [HOLD_FACTS, READ_ASSERTIONS, READ_REST, HOLD_FACTS_AGAIN, READ_ASSERTIONS_AGAIN, READ_REST_AGAIN],
)
async def test_a_commit_reads_the_partition_of_its_user_alone_and_by_an_index(
    stores: Stores, statement: LiteralString
) -> None:
    touched = Touched(
        scope=Scope(tenant=TENANT, user=str(ANA.user_id), avatar=str(NIL_AVATAR)), slots=("a||",)
    )
    async with stores.database.transaction() as conn:
        await conn.execute(AS_PROJECTION)
        cursor = await conn.execute("EXPLAIN " + statement, touched.params)
        plan = "\n".join(row[0] for row in await cursor.fetchall())

    assert "Seq Scan" not in plan
    assert "Index" in plan
    for table in ("memory_facts", "assertions"):
        assert len(set(re.findall(rf"{table}_\d+ ", plan))) <= 1


async def test_a_conversation_costs_few_round_trips_and_three_commits(migrated_url: str) -> None:
    async with open_database(migrated_url, max_size=1, connection_class=CountingConnection) as database:
        stores = Stores(database=database)
        await stores.remember(ended("warm", "hello", user=somebody()), candidate("pet", "cat"))
        counted = Counted.start(CountingConnection)
        await stores.remember(
            ended("s", "I live in Porto", user=somebody()),
            *(candidate("likes", f"thing {n}") for n in range(5)),
        )
        cost = counted.stop()

    print(cost)  # noqa: T201 - the counts are what a reader of the run looks for
    assert cost.commits <= 3
    assert cost.round_trips <= 6
    assert cost.statements <= 24


async def test_forget_everything_hides_what_was_said_before_and_what_comes_late(stores: Stores) -> None:
    await stores.remember(
        ended("s1", "I live in Porto"), candidate("home_city", "Porto"), candidate("pet", "dog")
    )
    swept = MARCH + DAY
    await stores.remember(
        ended("s2", "forget everything about me", at=swept),
        candidate("*", "*", at=swept, stance=Stance.FORGETS),
    )
    await stores.remember(
        ended("s0", "I drink tea", at=MARCH - DAY), candidate("likes", "tea", at=MARCH - DAY)
    )
    await stores.remember(
        ended("s3", "I live in Lyon", at=swept + DAY), candidate("home_city", "Lyon", at=swept + DAY)
    )

    assert await stores.values() == {
        "Porto": "deleted",
        "dog": "deleted",
        "tea": "deleted",
        "Lyon": "active",
    }
    recall = await stores.rows("SELECT content FROM lis.recall WHERE kind = 0")
    assert len(recall) == 1


async def test_taking_back_forget_everything_brings_the_facts_back(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    swept = MARCH + DAY
    sweep = ended("s2", "forget everything", at=swept)
    await stores.remember(sweep, candidate("*", "*", at=swept, stance=Stance.FORGETS))
    await stores.remember(ended("s2", "forget everything", "no, keep it", at=swept))

    assert await stores.values() == {"Porto": "active"}


async def test_the_day_of_an_event_is_the_day_where_it_happened_also_when_read_back(stores: Stores) -> None:
    morning = datetime(2024, 3, 1, tzinfo=timezone(timedelta(hours=9)))
    await stores.remember(ended("s1", "hello"), candidate("event", "moved house", valid_from=morning))
    before = await stores.rows("SELECT fact_id, norm, slot FROM lis.memory_facts")
    later = MARCH + 9 * DAY
    await stores.remember(
        ended("s2", "hello", at=later), candidate("event", "got a dog", at=later, valid_from=later)
    )

    after = await stores.rows("SELECT fact_id, norm, slot FROM lis.memory_facts WHERE fact_value LIKE 'm%%'")
    assert after == before
    assert "memory.fact.renamed" not in await stores.events()
