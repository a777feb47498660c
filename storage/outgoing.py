"""How what happened leaves the database: encoded into the outbox, with a nudge for the relay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.events import DomainEvent
from domain.outbox import OutboxRecord, RawRecord

Encode = Callable[[DomainEvent], Sequence[OutboxRecord]]


class EncodeDeadLetter(Protocol):
    """Makes the record for the dead-letter topic."""

    def __call__(
        self,
        record: RawRecord,
        *,
        error_class: str,
        reason: str,
        attempts: int,
        first_failed_at: datetime,
        replays: int = 0,
    ) -> OutboxRecord:
        """Return the dead letter of ``record``, which was redriven ``replays`` times before."""
        ...


def _nobody() -> None:
    """Wake nobody: the relay is in another process and hears the database's own notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """The encoders, and ``wake``, called after each commit that left records, for a relay in this process."""

    encode: Encode
    encode_dead_letter: EncodeDeadLetter
    wake: Callable[[], None] = _nobody
