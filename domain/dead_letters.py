"""Dead letters as an operator sees them (docs/architecture/dead-letters.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, cast
from uuid import UUID

from domain.outbox import RawRecord

DEFAULT_TENANT: Final = "default"
_MOST_TENANT_CHARS: Final = 200


class LetterStatus(StrEnum):
    """Where a dead letter stands: waiting for a person, under way again, or done after all."""

    OPEN = "open"
    REDRIVEN = "redriven"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where a record was read, which names its dead letter for ever."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which dead letters are meant; what is empty leaves nothing out. Times are of the first failure."""

    topics: tuple[str, ...] = ()
    error_classes: tuple[str, ...] = ()
    statuses: tuple[LetterStatus, ...] = ()
    tenant_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterSummary:
    """A dead letter without its bytes."""

    place: Place
    error_class: str
    reason: str
    status: LetterStatus
    attempts: int
    replays: int
    tenant_id: str | None
    size: int
    sent_at: datetime | None
    first_failed_at: datetime
    redriven_at: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter with the record as it came."""

    summary: LetterSummary
    record: RawRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterGroup:
    """How many dead letters of one topic died of one class."""

    topic: str
    error_class: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobName:
    """The job that a record of a jobs topic orders."""

    tenant_id: str
    user_id: UUID
    job_id: UUID


def tenant_of(record: RawRecord) -> str | None:
    """Return the tenant that ``record`` speaks of, as far as its value or its key can be read."""
    body = _body(record.value)
    if body is not None:
        return _tenant(body.get("tenant_id", DEFAULT_TENANT))
    key = (record.key or b"").decode(errors="replace")
    return _tenant(key.partition(":")[0]) if ":" in key else None


def job_of(record: RawRecord) -> JobName | None:
    """Return the job that ``record`` orders; None when it orders none that can be read."""
    body = _body(record.value)
    if body is None or body.get("kind") != "extract":
        return None
    tenant_id = _tenant(body.get("tenant_id"))
    try:
        user_id, job_id = UUID(str(body.get("user_id"))), UUID(str(body.get("job_id")))
    except ValueError:
        return None
    return JobName(tenant_id=tenant_id, user_id=user_id, job_id=job_id) if tenant_id else None


def _body(value: bytes | None) -> Mapping[str, object] | None:
    try:
        body: object = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, object]", body) if isinstance(body, dict) else None


def _tenant(found: object) -> str | None:
    """Return ``found`` where a column of text can hold it and a person can read it."""
    is_name = isinstance(found, str) and 0 < len(found) <= _MOST_TENANT_CHARS and found.isprintable()
    return found if is_name and isinstance(found, str) and "\N{REPLACEMENT CHARACTER}" not in found else None
