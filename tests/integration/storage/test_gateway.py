"""The gateway that writes soft deletes into the facts: its word is final, and a commit never misses it."""

import asyncio
from datetime import timedelta

import pytest
from psycopg import AsyncConnection, connect
from psycopg.errors import LockNotAvailable

from domain.jobs import JobOutcome, JobStatus
from domain.ports import RecallText
from tests.integration.storage.stores import (
    MARCH,
    Stores,
    candidate,
    ended,
    extracted,
    fold_order,
    words_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

DAY = timedelta(days=1)


async def test_the_gateways_delete_survives_folds_and_leaves_the_search_at_once(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")

    assert await stores.rows("SELECT 1 FROM lis.recall WHERE kind = 0") == []
    assert [one["kind"] for one in await stores.orders()] == ["extract", "fold"]
    await stores.jobs().refold(fold_order())
    await stores.jobs().refold(fold_order())
    earlier = MARCH - DAY
    await stores.remember(
        ended("s0", "I live in Porto", at=earlier), candidate("home_city", "Porto", at=earlier)
    )

    assert await stores.values() == {"Porto": "deleted"}
    assert (await stores.events()).count("memory.fact.deleted") == 1
    assert await stores.rows("SELECT 1 FROM lis.recall WHERE kind = 0") == []


async def test_the_gateways_delete_of_a_fact_that_a_commit_holds_waits_and_wins(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    claims = [await stores.claimed(ended(f"s{n}", "hello", at=MARCH + n * DAY)) for n in range(2, 6)]
    jobs = stores.jobs()

    async def delete() -> None:
        await asyncio.sleep(0.005)
        await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")

    await asyncio.gather(
        delete(),
        *(
            jobs.commit(one, extracted(one, candidate("home_city", "Porto", at=MARCH)), JobOutcome())
            for one in claims
        ),
    )
    await stores.jobs().refold(fold_order())

    assert await stores.values() == {"Porto": "deleted"}


async def test_a_delete_cannot_slip_between_what_a_commit_reads_and_writes(
    stores: Stores, migrated_url: str
) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    claim = await stores.claimed(ended("s2", "hello", at=MARCH + DAY))
    outcomes: list[str] = []

    def tokenizer(text: str, language: str | None) -> RecallText:
        # The commit asks for the words of a fact after it has read and before it writes.
        with connect(migrated_url, autocommit=True) as gateway:
            gateway.execute("SET lock_timeout = '100ms'")
            try:
                gateway.execute("UPDATE lis.memory_facts SET status = 'deleted'")
                outcomes.append("overtook")
            except LockNotAvailable:
                outcomes.append("waited")
        return words_of(text, language)

    again = candidate("home_city", "Porto", at=MARCH + DAY)
    await stores.jobs(tokenizer=tokenizer).commit(claim, extracted(claim, again), JobOutcome())

    assert outcomes == ["waited"]


async def test_an_undelete_by_the_gateway_brings_the_fact_back(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")
    await stores.jobs().refold(fold_order())
    await stores.run("UPDATE lis.memory_facts SET status = 'active', deleted_at = NULL")
    await stores.jobs().refold(fold_order())

    assert await stores.values() == {"Porto": "active"}
    assert len(await stores.rows("SELECT 1 FROM lis.recall WHERE kind = 0")) == 1


async def test_a_deadlock_with_the_gateway_costs_the_commit_nothing(
    stores: Stores, migrated_url: str
) -> None:
    await stores.remember(
        ended("s1", "I live in Porto"), candidate("home_city", "Porto"), candidate("pet", "dog")
    )
    claim = await stores.claimed(ended("s2", "hello", at=MARCH + DAY))
    said_again = [candidate("home_city", "Porto", at=MARCH + DAY), candidate("pet", "cat", at=MARCH + DAY)]
    async with await AsyncConnection.connect(migrated_url, autocommit=True) as gateway:
        # The gateway's session never breaks a deadlock itself: the commit is the one that loses.
        await gateway.execute("SET deadlock_timeout = '30s'")
        await gateway.execute("BEGIN")
        await gateway.execute("UPDATE lis.memory_facts SET status = 'deleted' WHERE fact_value = 'dog'")
        commit = asyncio.create_task(stores.jobs().commit(claim, extracted(claim, *said_again), JobOutcome()))
        await asyncio.sleep(0.3)
        await gateway.execute("UPDATE lis.memory_facts SET status = 'deleted' WHERE fact_value = 'Porto'")
        await gateway.execute("COMMIT")
        job = await commit

    await stores.jobs().refold(fold_order())
    assert job.status is JobStatus.COMPLETED
    assert await stores.values() == {"Porto": "deleted", "dog": "deleted", "cat": "active"}


async def test_an_undelete_lifts_a_delete_that_a_fast_clock_dated(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now() + interval '1 h'")
    await stores.jobs().refold(fold_order())
    await stores.run("UPDATE lis.memory_facts SET status = 'active', deleted_at = NULL")
    await stores.jobs().refold(fold_order())

    assert await stores.values() == {"Porto": "active"}


async def test_an_undelete_before_any_fold_makes_the_fact_findable_again(stores: Stores) -> None:
    await stores.remember(ended("s1", "I live in Porto"), candidate("home_city", "Porto"))
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")
    await stores.run("UPDATE lis.memory_facts SET status = 'active', deleted_at = NULL")
    await stores.jobs().refold(fold_order())

    assert await stores.values() == {"Porto": "active"}
    assert len(await stores.rows("SELECT 1 FROM lis.recall WHERE kind = 0")) == 1
