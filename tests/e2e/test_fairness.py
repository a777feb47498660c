"""Nobody's backlog is somebody else's wait (docs/architecture/fairness.md). Counted in model calls."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.backlogs import Ground, backlog, places_of
from tests.support.kafka import KafkaServer
from tests.support.publishing import until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

WORKERS: Final = 8
LATENCY: Final = 0.4
ONE: Final = 1_000_000
SIZES: Final = [pytest.param(300, id="300"), pytest.param(10_000, id="10000", marks=pytest.mark.long)]


@pytest.fixture
def ground(kafka: KafkaServer, migrated_url: str, topic_prefix: str, tmp_path: Path) -> Ground:
    return Ground(kafka=kafka, database_url=migrated_url, prefix=topic_prefix, folder=tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_a_backlog_of_one_tenant_does_not_delay_the_one_conversation_of_another(
    ground: Ground, size: int
) -> None:
    async with backlog(ground, latency=LATENCY, AFTERWORD_JOBS_IN_FLIGHT=str(WORKERS)) as on:
        async with on.service("intake", "relay"):
            await on.tell(range(size), tenant="busy")
            await on.queued(size, within=300)
            await on.tell([ONE], tenant="quiet")
            await on.queued(size + 1, within=60)
        assert await on.unread("bulk") == size + 1

        async with on.service("extraction", "relay"):
            assert await on.calls_before(ONE, within=120) <= WORKERS


@pytest.mark.parametrize("size", SIZES)
async def test_a_replayed_history_does_not_delay_a_live_conversation(ground: Ground, size: int) -> None:
    tenants = [f"tenant{number}" for number in range(10)]
    async with backlog(ground, latency=LATENCY, AFTERWORD_JOBS_IN_FLIGHT=str(WORKERS)) as on:
        async with on.service("intake", "relay"):
            for place, tenant in enumerate(tenants):
                await on.tell(range(place, size, len(tenants)), tenant=tenant, again=True)
            await on.queued(size, within=300)
        assert await on.unread("replay") == size

        async with on.service("intake", "extraction", "relay"):
            await until(on.is_working, within=30, what="a replayed conversation at the model")
            begun = len((await on.model.seen()).files)
            await on.tell([ONE], tenant=tenants[0])

            assert await on.calls_before(ONE, since=begun, within=120) <= WORKERS


@pytest.mark.long
async def test_a_model_that_hangs_on_replayed_conversations_leaves_workers_to_live_ones(
    ground: Ground,
) -> None:
    tenants = [f"tenant{number}" for number in range(WORKERS)]
    async with backlog(ground, latency=60.0, AFTERWORD_JOBS_IN_FLIGHT=str(WORKERS)) as on, on.service():
        for place, tenant in enumerate(tenants):
            await on.tell(range(10 * place, 10 * place + 10), tenant=tenant, again=True)
        await on.queued(10 * len(tenants), within=60)

        async def all_hang() -> bool:
            return (await on.model.seen()).most_at_once >= WORKERS * 3 // 4

        await until(all_hang, within=20, what="every worker of the replay lane at the model")
        await on.tell([ONE])

        assert await on.calls_before(ONE, within=10) < WORKERS


async def test_a_tenant_has_no_more_model_calls_at_once_than_slots_over_all_processes(
    ground: Ground,
) -> None:
    slots, size = 3, 30
    async with backlog(ground, latency=0.1, AFTERWORD_TENANT_SLOTS=str(slots)) as on:
        async with on.service("intake", "relay"):
            await on.tell(range(size))
            await on.queued(size, within=60)
        async with AsyncExitStack() as running:
            for _ in range(2):
                await running.enter_async_context(on.service("extraction", "relay"))
            await on.tables.settled(size, within=60)

        seen, jobs = await on.model.seen(), await on.tables.jobs()
        assert (seen.most_at_once, seen.calls) == (slots, size)
        # What was put back again and again has cost no attempt.
        assert {(job["status"], job["attempts"]) for job in jobs} == {("completed", 1)}


@pytest.mark.long
async def test_bulk_has_its_share_while_priority_has_more_than_enough(ground: Ground) -> None:
    dear = [f"dear{number}" for number in range(3)]
    plans = dict.fromkeys(dear, "enterprise")
    async with backlog(ground, latency=LATENCY, plans=plans, AFTERWORD_JOBS_IN_FLIGHT=str(WORKERS)) as on:
        async with on.service("intake", "relay"):
            for place, tenant in enumerate(dear):
                await on.tell(range(place, 360, len(dear)), tenant=tenant)
            await on.tell(range(ONE, ONE + 80), tenant="free")
            await on.queued(440, within=60)

        async with on.service("extraction", "relay"):
            await on.calls(120, within=60)
            files = (await on.model.seen()).files

        # From where both are at work. By the weights of 8 and 2 two of ten calls are bulk, and more where the
        # jobs of the other lane are just on their way back; if priority always came first, it would be one.
        both = files[2 * WORKERS : 120]
        bulk = len(places_of(both, range(ONE, ONE + 80)))
        assert 0.15 <= bulk / len(both) <= 0.5
