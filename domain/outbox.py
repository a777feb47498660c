"""Records that leave through the outbox: written with their cause in one transaction."""

from dataclasses import dataclass
from datetime import datetime

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord:
    """One record for a topic. ``value`` is None for a tombstone; ``available_at`` None means now."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    available_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord:
    """A record as it was read from a topic, byte for byte."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRecord:
    """A due row of the outbox and its id; ids of one scope ascend in the order of its commits."""

    id: int
    record: OutboxRecord
