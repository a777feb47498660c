"""Jobs: attempts, due times, dead letters, and what a broker lost."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.jobs import JobError, JobOutcome, JobStatus
from domain.outbox import RawRecord
from storage.job_rows import changed
from tests.integration.storage.stores import (
    DEADLINE,
    TENANT,
    Stores,
    candidate,
    ended,
    extracted,
    order_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

ERROR = JobError(code="unreadable_answer", message="no provider gave a readable answer")
RECORD = RawRecord(
    topic="extraction.jobs.bulk.v1",
    partition=3,
    offset=17,
    key=b"acme:\xff",
    value=b"\x00\xffraw",
    headers=(("odd", b"\xff\xfe"), ("odd", b"again")),
    timestamp=datetime(2024, 3, 1, tzinfo=UTC),
)


async def job_row(stores: Stores) -> Mapping[str, Any]:
    return (await stores.rows("SELECT * FROM lis.extraction_jobs"))[0]


async def test_a_failed_attempt_is_counted_and_comes_again_when_it_is_due(stores: Stores) -> None:
    conversation = ended("s", "I live in Porto")
    claim = await stores.claimed(conversation)
    await stores.jobs().put_back(claim, due_in=timedelta(seconds=60), error=ERROR, counted=True)

    job = await job_row(stores)
    assert (job["status"], job["attempts"], job["error"]["code"]) == ("retrying", 1, ERROR.code)
    assert [one["is_later"] for one in await stores.orders()] == [False, True]
    assert await stores.jobs().claim(claim.order, deadline=DEADLINE) is None

    await stores.run("UPDATE lis.extraction_jobs SET next_attempt_at = now()")
    second = await stores.jobs().claim(claim.order, deadline=DEADLINE)
    assert second is not None
    assert (second.attempt, second.fence) == (2, 2)


async def test_an_outage_is_no_attempt(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    await stores.jobs().put_back(claim, due_in=timedelta(0), error=ERROR, counted=False)
    second = await stores.jobs().claim(claim.order, deadline=DEADLINE)

    assert second is not None
    assert second.attempt == 1


async def test_a_job_taken_over_from_a_dead_worker_is_the_same_attempt(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    taken_over = await stores.jobs("w2").claim(claim.order, deadline=DEADLINE)

    assert taken_over is not None
    assert (taken_over.attempt, taken_over.fence) == (1, 2)


async def test_windows_that_were_read_are_not_paid_again(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    windows = extracted(claim, candidate("home_city", "Porto")).windows
    await stores.jobs().keep_windows(claim, windows)
    await stores.jobs().put_back(claim, due_in=timedelta(0), error=ERROR, counted=True)
    second = await stores.jobs().claim(claim.order, deadline=DEADLINE)

    assert second is not None
    assert second.kept == windows


async def test_a_finished_job_is_not_taken_again(stores: Stores) -> None:
    conversation = ended("s", "I live in Porto")
    await stores.remember(conversation, candidate("home_city", "Porto"))
    accepted = await stores.accept(conversation)

    assert await stores.jobs().claim(order_of(conversation, accepted), deadline=DEADLINE) is None


async def test_a_job_dies_once_with_its_record_byte_for_byte(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    await stores.jobs().bury(claim, RECORD, error=ERROR)
    await stores.jobs().bury(claim, RECORD, error=ERROR)

    job = await stores.reads().job(TENANT, job_id=claim.order.job_id, session_id=None)
    assert job is not None
    assert (job.status, job.error) == (JobStatus.DEAD, ERROR)
    letters = await stores.rows("SELECT * FROM lis.dead_letters")
    assert [(one["value"], one["error_class"]) for one in letters] == [(RECORD.value, "exhausted")]
    sent = await stores.rows("SELECT * FROM lis.outbox WHERE topic = 'afterword.dead-letters.v1'")
    assert [(one["key"], one["value"]) for one in sent] == [(RECORD.key, RECORD.value)]
    assert sent[0]["header_values"][:2] == [b"\xff\xfe", b"again"]
    assert (await stores.events())[-1] == "memory.job.dead"


async def test_an_unreadable_record_is_a_dead_letter_once(stores: Stores) -> None:
    letters = stores.dead_letters()
    news = [
        await letters.bury(RECORD, error_class="undecodable", reason="not JSON", attempts=1) for _ in range(2)
    ]

    assert news == [True, False]
    assert len(await stores.rows("SELECT 1 FROM lis.outbox")) == 1


async def test_a_job_whose_record_was_lost_is_ordered_again_once(stores: Stores) -> None:
    await stores.accept(ended("s", "I live in Porto"))
    await stores.run("DELETE FROM lis.outbox")
    early = await stores.jobs().requeue_stranded(older_than=timedelta(minutes=10))
    await stores.run("UPDATE lis.extraction_jobs SET queued_at = now() - interval '1 hour'")
    late = [await stores.jobs().requeue_stranded(older_than=timedelta(minutes=10)) for _ in range(2)]

    assert (early, late) == (0, [1, 0])
    assert len(await stores.orders()) == 1


async def test_a_change_of_a_job_that_is_told_again_has_the_id_that_it_had(stores: Stores) -> None:
    await stores.claimed(ended("s", "I live in Porto"))
    row = await job_row(stores)
    told = [changed(change, row).event_id for change in ("started", "started", "completed")]

    assert told[0] == told[1] != told[2]
    assert changed("started", {**row, "fence": 2}).event_id != told[0]


async def test_the_outcome_is_kept_with_the_job(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto"))
    outcome = JobOutcome(candidates_dropped={"secret": 2}, windows=1, provider="openai", tokens_in=9)
    ended_job = await stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), outcome)
    job = await stores.reads().job(TENANT, job_id=claim.order.job_id, session_id=None)

    assert job is not None
    assert job.outcome == ended_job.outcome
    assert job.outcome is not None
    assert (job.outcome.candidates_dropped, job.outcome.facts_created) == ({"secret": 2}, 1)


async def test_a_claim_that_waits_for_an_intake_reads_what_the_intake_wrote(stores: Stores) -> None:
    conversation = ended("s", "I live in Porto")
    order = order_of(conversation, await stores.accept(conversation))
    async with stores.database.transaction() as intake:
        await intake.execute("SELECT 1 FROM lis.extraction_jobs FOR UPDATE")
        waiting = asyncio.create_task(stores.jobs().claim(order, deadline=DEADLINE))
        await asyncio.sleep(0.2)
        await intake.execute("UPDATE lis.chat_messages SET content = 'I live in Lyon'")
    claim = await waiting

    assert claim is not None
    assert [one.content for one in claim.session.messages] == ["I live in Lyon"]


async def test_a_running_job_whose_time_is_up_is_ordered_again_without_waiting_longer(stores: Stores) -> None:
    conversation = ended("s1", "I live in Porto.")
    order = order_of(conversation, await stores.accept(conversation))
    assert await stores.jobs().claim(order, deadline=timedelta(seconds=-30)) is not None

    taken = [await stores.jobs().requeue_stranded(older_than=timedelta(minutes=10)) for _ in range(2)]

    assert taken == [1, 0]
