"""Handle dead letters that are sent again, and close them (docs/architecture/dead-letters.md)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from consumers.failures import Handled, Work
from domain.outbox import RawRecord
from schemas import headers


class ClosesLetters(Protocol):
    """Closes the dead letters of records that were handled after all."""

    async def close(self, record: RawRecord) -> None:
        """Close the letter that ``record`` was redriven from."""
        ...


class Redriven:
    """Wraps the handler of a lane: what is done in it that was a dead letter closes that letter.

    ``kinds`` are handlers of redriven records that are no records of the lane's own kind.
    """

    def __init__(
        self, handler: Work, *, letters: ClosesLetters, kinds: Mapping[str, Work] | None = None
    ) -> None:
        self._handler = handler
        self._letters = letters
        self._kinds = dict(kinds or {})

    async def __call__(self, record: RawRecord) -> Handled | None:
        """Handle ``record``; close its letter once that is committed, so that a crash between repeats both.

        Raises:
            InfrastructureError: the database is away; the same record may be handled again.
        """
        if headers.redriven(record.headers) is None:
            return await self._handler(record)
        kind = headers.text(record.headers, headers.DLQ_KIND)
        handler = self._kinds.get(kind, self._handler) if kind is not None else self._handler
        handled = await handler(_as_it_was_sent(record))
        if handled in (None, Handled.DONE):
            await self._letters.close(record)
        return handled


def _as_it_was_sent(record: RawRecord) -> RawRecord:
    """Give ``record`` the time of its first sending, which is when a message without a time was said."""
    sent_ms = headers.number(record.headers, headers.DLQ_SENT_MS)
    if sent_ms is None:
        return record
    try:
        return replace(record, timestamp=datetime.fromtimestamp(sent_ms / 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return record
