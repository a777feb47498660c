"""Headers of records: their names, and how they are read without trusting them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Headers = tuple[tuple[str, bytes], ...]

CORRELATION_ID: Final = "correlation_id"
REPLY_TO: Final = "reply_to"
REPLY_PARTITION: Final = "reply_partition"
DEADLINE_MS: Final = "deadline_ms"
TRACEPARENT: Final = "traceparent"
CONTENT_TYPE: Final = "content-type"
JSON: Final = b"application/json"

CE_SPECVERSION: Final = "ce_specversion"
CE_ID: Final = "ce_id"
CE_TYPE: Final = "ce_type"
CE_SOURCE: Final = "ce_source"
CE_TIME: Final = "ce_time"
CE_SUBJECT: Final = "ce_subject"

DLQ_PREFIX: Final = "dlq-"
DLQ_TOPIC: Final = "dlq-topic"
DLQ_PARTITION: Final = "dlq-partition"
DLQ_OFFSET: Final = "dlq-offset"
DLQ_ERROR: Final = "dlq-error"
DLQ_ERROR_CLASS: Final = "dlq-error-class"
DLQ_ATTEMPTS: Final = "dlq-attempts"
DLQ_FIRST_FAILED_AT: Final = "dlq-first-failed-at"
DLQ_REPLAYS: Final = "dlq-replays"
DLQ_KIND: Final = "dlq-kind"
DLQ_SENT_MS: Final = "dlq-sent-ms"
MESSAGE: Final = "message"

REPLAY_ID: Final = "replay-id"
REPLAY_GENERATION: Final = "replay-generation"
REPLAY_MODE: Final = "replay-mode"

_MOST_DIGITS: Final = 18
_MOST_ID_CHARS: Final = 200
_MOST_TOPIC_CHARS: Final = 249
_MOST_INT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """Which dead letter a record is, that was sent on its way again for the ``replays``-th time."""

    topic: str
    partition: int
    offset: int
    replays: int


def text(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    """Return the last header called ``name``; None when it is absent, empty or not UTF-8."""
    found: str | None = None
    for key, value in headers:
        if key == name:
            found = _decoded(value)
    return found


def correlation_id(headers: Iterable[tuple[str, bytes]]) -> str | None:
    """Return the correlation id; None where it is none, long, or not printable."""
    found = text(headers, CORRELATION_ID)
    return found if found and len(found) <= _MOST_ID_CHARS and found.isprintable() else None


def number(headers: Iterable[tuple[str, bytes]], name: str) -> int | None:
    """Return the header called ``name`` as a number of zero or more; None when it is no such number."""
    value = text(headers, name)
    if value is None or not value.isascii() or not value.isdigit() or len(value) > _MOST_DIGITS:
        return None
    return int(value)


def redriven(headers: Iterable[tuple[str, bytes]]) -> Redriven | None:
    """Return the dead letter that a record with ``headers`` says to be; None when it says no such thing."""
    found = tuple(headers)
    topic = text(found, DLQ_TOPIC)
    partition, offset = number(found, DLQ_PARTITION), number(found, DLQ_OFFSET)
    replays = number(found, DLQ_REPLAYS)
    if topic is None or partition is None or offset is None or replays is None:
        return None
    is_place = topic.isprintable() and len(topic) <= _MOST_TOPIC_CHARS and partition <= _MOST_INT
    if not is_place or not 0 < replays <= _MOST_INT:
        return None
    return Redriven(topic=topic, partition=partition, offset=offset, replays=replays)


def _decoded(value: bytes | None) -> str | None:
    try:
        return value.decode() or None if value is not None else None
    except UnicodeDecodeError:
        return None
