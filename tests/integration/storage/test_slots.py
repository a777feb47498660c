"""Slots: how many jobs of a tenant run at once is decided where they are claimed."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from domain.errors import SlotsTakenError
from domain.jobs import Claim, JobOrder
from storage.job_sql import LOCK_TENANTS
from storage.jobs import PostgresJobs
from storage.outbox import TURN
from storage.put_offs import tenant_key
from tests.integration.storage.stores import DEADLINE, Stores, ended, order_of, somebody

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

SLOTS = 3


def jobs_of(stores: Stores, worker: str = "w1") -> PostgresJobs:
    return stores.jobs(worker, slots=SLOTS)


async def orders(stores: Stores, number: int, *, tenant: str = "acme", **more: Any) -> list[JobOrder]:
    found = []
    for place in range(number):
        one = ended(f"{tenant} {place} {more}", "I live in Porto", user=somebody(), tenant=tenant, **more)
        found.append(order_of(one, await stores.accept(one)))
    return found


async def claimed(jobs: PostgresJobs, *wanted: JobOrder) -> list[Claim | None]:
    """Claim all at once; None stands for one that found no slot."""

    async def one(order: JobOrder) -> Claim | None:
        try:
            return await jobs.claim(order, deadline=DEADLINE)
        except SlotsTakenError:
            return None

    return await asyncio.gather(*(one(order) for order in wanted))


async def test_workers_that_claim_at_once_never_take_more_than_the_slots(stores: Stores) -> None:
    wanted = await orders(stores, 12)
    workers = [jobs_of(stores, f"w{number}") for number in range(4)]

    taken = await asyncio.gather(*(claimed(workers[n % 4], order) for n, order in enumerate(wanted)))

    assert Counter(one is not None for (one,) in taken) == {True: SLOTS, False: 9}


async def test_a_claim_counts_what_another_worker_is_about_to_take(stores: Stores) -> None:
    first, second = await orders(stores, 2)
    async with stores.database.transaction() as other:
        await other.execute(LOCK_TENANTS, {"keys": [tenant_key("acme")]})
        waiting = asyncio.create_task(claimed(stores.jobs(slots=1), second))
        await asyncio.sleep(0.2)
        await other.execute(
            "UPDATE lis.extraction_jobs SET status = 'running', claimed_until = now() + interval '1 min'"
            " WHERE job_id = %s",
            (first.job_id,),
        )

    assert await waiting == [None]


async def test_each_tenant_has_slots_of_its_own(stores: Stores) -> None:
    wanted = [*await orders(stores, 5), *await orders(stores, 2, tenant="other")]

    taken = await claimed(jobs_of(stores), *wanted)

    assert [one is not None for one in taken] == [True] * 3 + [False] * 2 + [True] * 2


async def test_a_tenant_may_have_more_or_fewer_slots_than_others(stores: Stores) -> None:
    await stores.run("INSERT INTO lis.tenants (tenant_id, slots) VALUES ('acme', 1)")

    taken = await claimed(jobs_of(stores), *await orders(stores, 2))

    assert [one is not None for one in taken] == [True, False]


async def test_replayed_jobs_have_half_the_slots_and_none_of_the_live_ones(stores: Stores) -> None:
    again = await orders(stores, 3)
    await stores.run("UPDATE lis.extraction_jobs SET lane = 'replay'")
    live = await orders(stores, 3, timezone="UTC")

    jobs = jobs_of(stores)
    replayed, lived = await claimed(jobs, *again), await claimed(jobs, *live)

    assert [one is not None for one in replayed] == [True, False, False]
    assert [one is not None for one in lived] == [True] * 3


async def test_a_job_that_is_taken_over_keeps_its_slot(stores: Stores) -> None:
    first, *others = await orders(stores, 4)
    await claimed(jobs_of(stores), first, *others[:2])

    taken = await claimed(jobs_of(stores, "w2"), others[2], first)

    assert [one is not None for one in taken] == [False, True]


async def test_a_worker_that_died_gives_its_slots_back_in_time(stores: Stores) -> None:
    *lost, late = await orders(stores, 4)
    await claimed(jobs_of(stores), *lost)
    await stores.run("UPDATE lis.extraction_jobs SET claimed_until = now() WHERE status = 'running'")

    assert (await claimed(jobs_of(stores, "w2"), late)) != [None]


async def test_a_job_beyond_the_slots_waits_for_its_time_without_costing_an_attempt(stores: Stores) -> None:
    *running, late = await orders(stores, 4)
    jobs = jobs_of(stores)
    claims = await claimed(jobs, *running)
    assert await claimed(jobs, late) == [None]
    await jobs.put_off(late, job_seconds=1.0)

    (row,) = await stores.rows(
        "SELECT status, attempts, fence, next_attempt_at > now() AS waits FROM lis.extraction_jobs"
        " WHERE job_id = %s",
        late.job_id,
    )
    assert dict(row) == {"status": "queued", "attempts": 0, "fence": 0, "waits": True}
    assert [one["is_later"] for one in await stores.orders()] == [False] * 4 + [True]
    assert await jobs.claim(late, deadline=DEADLINE) is None

    assert claims[0] is not None
    await jobs.gate(claims[0], "empty")
    await stores.run("UPDATE lis.extraction_jobs SET next_attempt_at = now() WHERE status = 'queued'")
    again = await jobs.claim(late, deadline=DEADLINE)
    assert again is not None
    assert again.attempt == 1


async def test_a_running_job_that_is_put_off_stays_with_its_worker_and_is_ordered_again(
    stores: Stores,
) -> None:
    (order,) = await orders(stores, 1)
    jobs = jobs_of(stores)
    (claim,) = await claimed(jobs, order)
    await jobs.put_off(order, job_seconds=1.0)

    assert [one["is_later"] for one in await stores.orders()] == [False, True]
    assert claim is not None
    await jobs.gate(claim, "empty")
    await jobs.put_off(order, job_seconds=1.0)
    assert len(await stores.orders()) == 2


async def test_a_long_queue_comes_back_over_a_long_time(stores: Stores) -> None:
    wanted = await orders(stores, 40)
    jobs = jobs_of(stores)
    await asyncio.gather(*(jobs.put_off(order, job_seconds=3.0) for order in wanted))

    due = await stores.rows(
        "SELECT extract(epoch FROM next_attempt_at - now())::float8 AS seconds FROM lis.extraction_jobs"
    )
    seconds = sorted(one["seconds"] for one in due)
    # Forty jobs of three seconds for three slots are forty seconds of work.
    assert len(seconds) == 40
    assert 20 < seconds[-1] < 40
    assert seconds[20] > 5


async def test_many_rows_that_wait_for_their_time_are_not_passed_over_by_the_relay(stores: Stores) -> None:
    await stores.run(
        "INSERT INTO lis.outbox (topic, key, value, available_at)"
        " SELECT 'later', 'k', 'v', now() + interval '1 hour' FROM generate_series(1, 20000)"
    )
    await stores.run("INSERT INTO lis.outbox (topic, key, value) VALUES ('now', 'k', 'v')")
    await stores.run("ANALYZE lis.outbox")

    async with stores.database.connection() as conn:
        params = {"done": [], "most": 500, "most_later": 100}
        cursor = await conn.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + TURN, params)
        row = await cursor.fetchone()

    assert row is not None
    assert _passed_over(row[0][0]["Plan"]) == 0


def _passed_over(plan: Mapping[str, Any]) -> int:
    below = sum(_passed_over(part) for part in plan.get("Plans", ()))
    return int(plan.get("Rows Removed by Filter", 0)) + below
