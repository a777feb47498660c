"""What rules read in the place of a model is read again, and an outage of the model costs little."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import pytest

from domain.redo_degraded import JobRef, RedoDegraded, Redone

pytestmark = pytest.mark.anyio


class Jobs:
    """Degraded jobs, each done again at once by a model or by rules, as the test says."""

    def __init__(self, count: int) -> None:
        self.left: list[JobRef] = [("acme", uuid4()) for _ in range(count)]
        self.outcome = Redone.BY_A_MODEL
        self.asked: list[int] = []

    async def order_again(self, *, older_than: timedelta, most: int) -> Sequence[JobRef]:
        taken, self.left = self.left[:most], self.left[most:]
        self.asked.append(len(taken))
        return taken

    async def redone(self, jobs: Sequence[JobRef]) -> Redone:
        if self.outcome is Redone.BY_RULES:
            self.left += jobs
        return self.outcome


def redo(jobs: Jobs) -> RedoDegraded:
    return RedoDegraded(jobs=jobs, older_than=timedelta(minutes=1), most=8)


async def test_while_a_model_does_them_twice_as_many_are_ordered_each_time() -> None:
    jobs = Jobs(30)
    turn = redo(jobs)

    for _ in range(8):
        await turn()

    assert jobs.asked == [1, 2, 4, 8, 8, 7, 0, 0]


async def test_while_the_model_is_away_one_is_tried_each_time() -> None:
    jobs = Jobs(10)
    turn = redo(jobs)
    for _ in range(3):
        await turn()

    jobs.outcome = Redone.BY_RULES
    for _ in range(3):
        await turn()

    assert jobs.asked == [1, 2, 4, 1, 1, 1]


async def test_nothing_is_ordered_before_the_last_ones_are_done() -> None:
    jobs = Jobs(10)
    turn = redo(jobs)
    await turn()
    jobs.outcome = Redone.UNDER_WAY

    assert await turn() == 0
    assert jobs.asked == [1]
