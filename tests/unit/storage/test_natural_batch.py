"""Natural batches."""

import asyncio
from collections.abc import Sequence

import pytest

from storage.natural_batch import NaturalBatch

pytestmark = pytest.mark.anyio


class Flushes:
    """Doubles numbers; a negative one has an error in its place."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None

    async def __call__(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(items))
        await self.open.wait()
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [one * 2 if one >= 0 else ValueError("negative") for one in items]


async def test_what_arrives_while_a_flush_runs_goes_with_the_next_one() -> None:
    flushes = Flushes()
    batch = NaturalBatch(flushes, cap=3)

    results = await asyncio.gather(*(batch.submit(n) for n in range(6)))

    assert results == [0, 2, 4, 6, 8, 10]
    assert [len(one) for one in flushes.batches] == [1, 3, 2]


async def test_an_error_in_the_place_of_a_result_reaches_its_caller_alone() -> None:
    batch = NaturalBatch(Flushes(), cap=4)

    results = await asyncio.gather(*(batch.submit(n) for n in (1, 2, -1, 3)), return_exceptions=True)

    assert [results[0], results[1], results[3]] == [2, 4, 6]
    assert isinstance(results[2], ValueError)


async def test_a_failed_flush_fails_its_callers_and_not_the_next_ones() -> None:
    flushes = Flushes()
    flushes.error = ConnectionError()
    batch = NaturalBatch(flushes, cap=2)

    results = await asyncio.gather(*(batch.submit(n) for n in range(3)), return_exceptions=True)
    flushes.error = None

    assert [type(one) for one in results] == [ConnectionError] * 3
    assert await batch.submit(5) == 10


@pytest.mark.parametrize("who", [0, 1, 3])
async def test_a_cancelled_caller_takes_nobody_with_it(who: int) -> None:
    flushes = Flushes()
    flushes.open.clear()
    batch = NaturalBatch(flushes, cap=2)
    tasks = [asyncio.ensure_future(batch.submit(n)) for n in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[who].cancel()
    await asyncio.sleep(0)
    flushes.open.set()

    async with asyncio.timeout(5):
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [one for n, one in enumerate(results) if n != who] == [n * 2 for n in range(5) if n != who]
    assert isinstance(results[who], asyncio.CancelledError)
    assert await batch.submit(7) == 14


async def test_a_leader_cancelled_in_its_flush_leaves_the_others_to_the_next_one() -> None:
    flushes = Flushes()
    batch = NaturalBatch(flushes, cap=3)
    flushes.open.clear()
    first = asyncio.ensure_future(batch.submit(0))
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(batch.submit(n)) for n in range(1, 4)]
    await asyncio.sleep(0)
    flushes.open.set()
    while len(flushes.batches) < 2:
        flushes.open.set()
        await asyncio.sleep(0)
        flushes.open.clear()
    others[0].cancel()
    await asyncio.sleep(0)
    flushes.open.set()

    async with asyncio.timeout(5):
        results = await asyncio.gather(*others, return_exceptions=True)

    assert await first == 0
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [4, 6]
    assert flushes.batches == [[0], [1, 2, 3], [2, 3]]
