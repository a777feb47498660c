"""What happens to a record whose handling fails (docs/architecture/consuming.md, "Failures")."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from consumers.failure_limit import FailureLimit
from domain.errors import (
    ClaimLostError,
    InfrastructureError,
    InvalidInputError,
    PermanentError,
    TransientError,
    UndecodableError,
)
from domain.outbox import RawRecord
from domain.stores import DeadLetterStore
from schemas.headers import redriven
from telemetry.logs import log_context
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

_MOST_REASON_CHARS: Final = 300


class Handled(StrEnum):
    """How the handling of a record ended, or that it waits for the database or the broker.

    ``DEAD``, ``PUT_BACK`` and ``BEYOND_SLOTS`` are those of a job, which has written its dead letter or its
    next order itself.
    """

    DONE = "done"
    UNDECODABLE = "undecodable"
    INVALID = "invalid"
    PERMANENT = "permanent"
    EXHAUSTED = "exhausted"
    DEAD = "dead"
    PUT_BACK = "put_back"
    BEYOND_SLOTS = "beyond_slots"
    WAITING = "waiting"


Work = Callable[[RawRecord], Awaitable[Handled | None]]
"""Handles a record and may say how that ended; nothing said means that it is done."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait between tries, and how many a record gets whose own failure may pass."""

    first_delay: float = 0.2
    most_delay: float = 15.0
    attempts: int = 3

    def delay(self, attempt: int, *, share: float) -> float:
        """Return the seconds to wait after ``attempt`` tries; ``share``, 0 to 1, spreads them."""
        longest = min(self.first_delay * 2.0 ** min(attempt, 20), self.most_delay)
        return longest * (0.5 + share / 2)


class FailureGuard:
    """Wraps a handler so that it never leaks a known error.

    An outage makes the record wait in place, for as long as it lasts, and counts as no attempt. A record that
    can never be handled becomes a dead letter, once. Anything else is a bug and is let through, to stall the
    partition. ``on_handled`` is told each end of a handling, and each wait.
    """

    def __init__(
        self,
        handler: Work,
        *,
        dead_letters: DeadLetterStore,
        limit: FailureLimit,
        patience: Patience | None = None,
        on_handled: Callable[[RawRecord, Handled], None] = lambda _record, _handled: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._handler = handler
        self._dead_letters = dead_letters
        self._limit = limit
        self._patience = patience or Patience()
        self._on_handled = on_handled
        self._sleep = sleep
        self._waiting = Notice(logger)

    async def __call__(self, record: RawRecord) -> None:
        """Handle ``record``, wait with it, or bury it.

        Raises:
            TooManyFailuresError: most messages fail, so this one is neither handled nor buried.
        """
        self._limit.check()
        with log_context(topic=record.topic, partition=record.partition, offset=record.offset):
            handled = await self._outcome(record)
            self._on_handled(record, handled)
            logger.info("record %s", handled)
        if handled is Handled.DONE:
            self._limit.succeeded()
        elif handled is Handled.DEAD:
            self._count_failure(record)

    async def _outcome(self, record: RawRecord) -> Handled:
        attempts = 1
        while True:
            try:
                handled = await self._in_place(record, lambda: self._handler(record))
            except ClaimLostError:
                # Another worker has the job and does it; what is ours to do with the record is done.
                return Handled.DONE
            except TransientError as error:
                if attempts >= self._patience.attempts:
                    return await self._buried(record, error, Handled.EXHAUSTED, attempts=attempts)
                await self._sleep(self._delay(attempts))
                attempts += 1
            except PermanentError as error:
                return await self._buried(record, error, _class_of(error), attempts=attempts)
            else:
                return handled or Handled.DONE

    async def _buried(
        self, record: RawRecord, error: Exception, handled: Handled, *, attempts: int
    ) -> Handled:
        self._count_failure(record)
        reason = f"{type(error).__name__}: {error}"[:_MOST_REASON_CHARS]

        async def bury() -> None:
            await self._dead_letters.bury(record, error_class=handled, reason=reason, attempts=attempts)

        await self._in_place(record, bury)
        return handled

    def _count_failure(self, record: RawRecord) -> None:
        """Count against the limit; what a person sent again and dies again says nothing of most messages."""
        if redriven(record.headers) is None:
            self._limit.failed()

    async def _in_place(self, record: RawRecord, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat ``call`` for as long as the database or the broker is away."""
        waits = 0
        while True:
            try:
                done = await call()
            except InfrastructureError as error:
                self._on_handled(record, Handled.WAITING)
                # Every record in hand waits, and what comes after them as well.
                self._waiting.begins("records wait in place: %s", type(error).__name__)
                waits += 1
                await self._sleep(self._delay(waits))
            else:
                self._waiting.is_over()
                return done

    def _delay(self, attempt: int) -> float:
        return self._patience.delay(attempt, share=random.random())  # noqa: S311 - spreads load, keeps no secret


def _class_of(error: PermanentError) -> Handled:
    match error:
        case UndecodableError():
            return Handled.UNDECODABLE
        case InvalidInputError():
            return Handled.INVALID
        case _:
            return Handled.PERMANENT
