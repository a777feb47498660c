"""A job that ends whoever tries it is buried; a job that is only unlucky is not."""

import pytest

from domain.extract_session import MOST_TAKEOVERS
from domain.jobs import JobOrder
from tests.integration.extraction.scripted import RECORD, ScriptedExtractor, run, says, worker
from tests.integration.storage.stores import DEADLINE, Stores, candidate, ended, extracted, order_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TALK = ended("talk", "I live in Porto and I am a nurse.")
CITY = ("home_city", "Porto")


async def order(stores: Stores) -> JobOrder:
    return order_of(TALK, await stores.accept(TALK))


async def loses(stores: Stores, wanted: JobOrder, *, workers: int, start: int = 0) -> None:
    """Have ``workers`` processes in a row take the job and be gone."""
    for number in range(start, start + workers):
        assert await stores.jobs(f"lost-{number}").claim(wanted, deadline=DEADLINE) is not None


async def ends_as(stores: Stores) -> tuple[str, int]:
    (row,) = await stores.rows("SELECT status, attempts FROM lis.extraction_jobs")
    return row["status"], row["attempts"]


async def dead_letters(stores: Stores) -> list[tuple[str, bytes]]:
    rows = await stores.rows("SELECT error_class, value FROM lis.dead_letters")
    return [(row["error_class"], bytes(row["value"])) for row in rows]


async def test_a_job_that_ends_every_worker_is_buried_once_as_exhausted(stores: Stores) -> None:
    wanted, extractor = await order(stores), ScriptedExtractor(says(CITY))
    await loses(stores, wanted, workers=MOST_TAKEOVERS + 1)

    for name in ("next", "another"):
        await run(worker(stores, extractor, name=name), wanted)

    assert extractor.calls == 0
    assert await ends_as(stores) == ("dead", 1)
    assert await dead_letters(stores) == [("exhausted", RECORD.value)]
    letters = await stores.rows("SELECT 1 FROM lis.outbox WHERE topic LIKE '%%dead-letters%%'")
    assert len(letters) == 1


async def test_a_job_that_has_outlived_as_many_workers_as_it_may_is_still_done(stores: Stores) -> None:
    wanted = await order(stores)
    await loses(stores, wanted, workers=MOST_TAKEOVERS)

    await run(worker(stores, ScriptedExtractor(says(CITY)), name="next"), wanted)

    assert await ends_as(stores) == ("completed", 1)
    assert await dead_letters(stores) == []


async def test_a_worker_that_claims_its_own_job_again_was_not_lost(stores: Stores) -> None:
    wanted = await order(stores)
    for _ in range(3 * MOST_TAKEOVERS):
        await stores.jobs("w1").claim(wanted, deadline=DEADLINE)

    await run(worker(stores, ScriptedExtractor(says(CITY)), name="w1"), wanted)

    assert await ends_as(stores) == ("completed", 1)


async def test_a_job_that_is_given_back_at_each_restart_is_never_buried(stores: Stores) -> None:
    wanted = await order(stores)
    for number in range(3 * MOST_TAKEOVERS):
        held = stores.jobs(f"restarted-{number}")
        claim = await held.claim(wanted, deadline=DEADLINE)
        assert claim is not None
        await held.put_back(claim, due_in=DEADLINE * 0, error=None, counted=False)

    await run(worker(stores, ScriptedExtractor(says(CITY)), name="next"), wanted)

    assert await ends_as(stores) == ("completed", 1)


async def test_progress_of_a_job_starts_the_count_anew(stores: Stores) -> None:
    wanted = await order(stores)
    await loses(stores, wanted, workers=MOST_TAKEOVERS)
    reading = stores.jobs("reads")
    claim = await reading.claim(wanted, deadline=DEADLINE)
    assert claim is not None
    await reading.keep_windows(claim, extracted(claim, candidate(*CITY)).windows)
    await loses(stores, wanted, workers=MOST_TAKEOVERS - 1, start=MOST_TAKEOVERS)

    extractor = ScriptedExtractor(says(CITY))
    await run(worker(stores, extractor, name="next"), wanted)

    assert await ends_as(stores) == ("completed", 1)


async def test_a_buried_job_that_is_sent_again_is_like_new(stores: Stores) -> None:
    wanted = await order(stores)
    await loses(stores, wanted, workers=MOST_TAKEOVERS + 1)
    await run(worker(stores, ScriptedExtractor(), name="buries"), wanted)
    await stores.run("UPDATE lis.extraction_jobs SET status = 'queued', attempts = 0")

    await run(worker(stores, ScriptedExtractor(says(CITY)), name="next"), wanted)

    assert await ends_as(stores) == ("completed", 1)
