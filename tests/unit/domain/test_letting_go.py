"""A job that is cut off while the database is away is given back when it is there again."""

import asyncio
from datetime import timedelta
from typing import cast

import pytest

from domain.errors import ClaimLostError, StorageUnavailableError
from domain.jobs import Claim, JobError
from domain.letting_go import LettingGo

pytestmark = pytest.mark.anyio

CLAIM = cast("Claim", object())


class Jobs:
    """Fails as told, then takes the job back."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.tries = 0
        self.taken: list[Claim] = []

    async def put_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> None:
        assert (due_in, error, counted) == (timedelta(), None, False)
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        self.taken.append(claim)


async def test_what_cannot_be_given_back_at_once_is_given_back_later() -> None:
    jobs = Jobs(*[StorageUnavailableError("away")] * 5)
    pauses = [asyncio.Event() for _ in range(5)]
    waiting = iter(pauses)

    async def pause(_: float) -> None:
        await next(waiting).wait()

    await LettingGo(jobs, pause=pause)(CLAIM)

    assert jobs.taken == []
    for event in pauses:
        event.set()
    async with asyncio.timeout(5):
        while not jobs.taken:
            await asyncio.sleep(0.01)
    assert jobs.tries == 6


async def test_a_cancelled_handler_still_gives_its_job_back() -> None:
    jobs = Jobs(StorageUnavailableError("away"))
    letting_go = LettingGo(jobs, pause=lambda _: asyncio.sleep(0.05))
    handler = asyncio.create_task(letting_go(CLAIM))
    await asyncio.sleep(0.01)
    handler.cancel()
    await asyncio.gather(handler, return_exceptions=True)

    async with asyncio.timeout(5):
        while not jobs.taken:
            await asyncio.sleep(0.01)


async def test_a_job_that_somebody_else_has_by_now_is_left_to_them() -> None:
    jobs = Jobs(ClaimLostError("taken"))

    await LettingGo(jobs)(CLAIM)

    assert (jobs.tries, jobs.taken) == (1, [])
