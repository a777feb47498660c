"""Read again what rules read in the place of a model (docs/architecture/extraction.md, "Models")."""

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

JobRef = tuple[str, UUID]


class Redone(StrEnum):
    """What became of jobs that were ordered again."""

    UNDER_WAY = "under_way"
    BY_A_MODEL = "by_a_model"
    BY_RULES = "by_rules"


class DegradedJobs(Protocol):
    """Jobs that rules did in the place of a model."""

    async def order_again(self, *, older_than: timedelta, most: int) -> Sequence[JobRef]:
        """Order again, in the replay lane, the ``most`` that were done longest ago; name them."""
        ...

    async def redone(self, jobs: Sequence[JobRef]) -> Redone:
        """Say what became of ``jobs`` as a whole: one by rules is enough for ``BY_RULES``."""
        ...


class RedoDegraded:
    """Tries one job; while a model does them, twice as many each time, so that an outage costs little."""

    def __init__(self, *, jobs: DegradedJobs, older_than: timedelta, most: int) -> None:
        self._jobs = jobs
        self._older_than = older_than
        self._most = most
        self._at_once = 1
        self._tried: Sequence[JobRef] = ()

    async def __call__(self) -> int:
        """Order the next ones, when those before are done; say how many.

        Raises:
            StorageUnavailableError: the database is away; the same call may be made again.
        """
        if self._tried:
            match await self._jobs.redone(self._tried):
                case Redone.UNDER_WAY:
                    return 0
                case Redone.BY_A_MODEL:
                    self._at_once = min(self._at_once * 2, self._most)
                case Redone.BY_RULES:
                    self._at_once = 1
        self._tried = await self._jobs.order_again(older_than=self._older_than, most=self._at_once)
        return len(self._tried)
