"""Give back a job that is cut off, for as long as the database is away (docs/architecture/extraction.md)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

from domain.errors import ClaimLostError, InfrastructureError
from domain.jobs import Claim, JobError

# A part of what a lane waits for what it has cancelled.
_AT_ONCE_S: Final = 1.0
_AGAIN_S: Final = 0.5


class TakesBack(Protocol):
    """Takes a job back."""

    async def put_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> None:
        """Give the job back for a later attempt, ``counted`` as one or not."""
        ...


class LettingGo:
    """Orders jobs again that were cut off: whoever each was taken from holds its record for done.

    Nobody else would begin such a job before its deadline. So what cannot be given back at once, since the
    database does not answer, is given back in the background, for as long as this process lives.
    """

    def __init__(self, jobs: TakesBack, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._jobs = jobs
        self._pause = pause
        self._owed: set[asyncio.Task[None]] = set()

    async def __call__(self, claim: Claim) -> None:
        """Give ``claim`` back; return when that is done, or after a second."""
        giving = asyncio.create_task(self._given_back(claim))
        self._owed.add(giving)
        giving.add_done_callback(self._owed.discard)
        with suppress(TimeoutError):
            async with asyncio.timeout(_AT_ONCE_S):
                await asyncio.shield(giving)

    async def _given_back(self, claim: Claim) -> None:
        while True:
            try:
                await self._jobs.put_back(claim, due_in=timedelta(), error=None, counted=False)
            except InfrastructureError:
                await self._pause(_AGAIN_S)
            except ClaimLostError:
                # Somebody else has it by now.
                return
            else:
                return
