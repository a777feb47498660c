"""A fact as a row: all that a reader needs, one attribute a column, nothing to be derived from text."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.memory.assertions import Assertion, Scope
from domain.memory.fact_keys import fact_key_of
from domain.memory.projection import Fact, Interval, Status
from domain.memory.sentences import sentence_of
from domain.memory.slots import slot_text
from domain.memory.stances import Mode, Stance

Period = tuple[datetime | None, datetime | None]

MERGED: Final = "merged"
_DIGITS: Final = 4
_STANCE: Final = {Mode.HOLDS: Stance.HOLDS, Mode.DENIES: Stance.DENIES, Mode.PLANS: Stance.PLANS}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A fact as it is stored and shown.

    Two rows are equal when a reader sees the same; the revision and the times of the database do not count.
    ``intervals`` is in the normal form of a multirange: ordered, joined where they touch, none of no length.
    ``told_status`` is the status that the last event told; the gateway changes ``status`` without an event.
    """

    fact_id: UUID
    tenant_id: str
    user_id: str
    avatar_id: str
    category: str
    fact_key: str
    fact_value: str
    confidence: float
    status: Status
    source_session_id: str
    source_message_ids: tuple[str, ...]
    source_excerpt: str
    dedup_hash: str
    slot: str
    mode: Mode
    norm: str
    content: str
    importance: float
    reinforced: int
    first_said_at: datetime
    last_said_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    intervals: tuple[Period, ...]
    expires_at: datetime | None
    superseded_by: UUID | None
    merged_into: UUID | None
    names: frozenset[UUID]
    asserted_by: str
    extraction_method: str
    model: str | None
    spec_version: str | None
    reasoning: str
    aliases: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    revision: int = field(default=1, compare=False)
    told_status: Status | None = field(default=None, compare=False)
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)
    last_seen_at: datetime | None = field(default=None, compare=False)
    deleted_at: datetime | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # A `real` column keeps seven digits; four survive it in both directions.
        object.__setattr__(self, "confidence", round(self.confidence, _DIGITS))
        object.__setattr__(self, "importance", round(self.importance, _DIGITS))

    @property
    def polarity(self) -> str:
        """``negative`` for a denial, else ``positive``."""
        return "negative" if self.mode is Mode.DENIES else "positive"

    @property
    def memory_type(self) -> str:
        """``short`` when the fact expires, else ``long``."""
        return "short" if self.expires_at is not None else "long"


def row_of(fact: Fact, scope: Scope, evidence: Mapping[UUID, Assertion]) -> FactRow:
    """Return the row of ``fact``; ``evidence`` has the statements of its scope by their ids."""
    source = evidence[fact.source]
    is_as_said = source.norm == fact.norm
    key = fact_key_of(fact.slot, fact.mode)
    newest = fact.intervals[-1]
    return FactRow(
        fact_id=fact.fact_id,
        tenant_id=scope.tenant,
        user_id=scope.user,
        avatar_id=scope.avatar,
        category=fact.category,
        fact_key=key,
        fact_value=fact.value,
        confidence=fact.confidence,
        status=fact.status,
        source_session_id=source.session_id,
        source_message_ids=source.message_ids,
        source_excerpt=source.excerpt,
        dedup_hash=dedup_hash(scope.avatar, key, fact.norm),
        slot=slot_text(fact.slot),
        mode=fact.mode,
        norm=fact.norm,
        content=_content(fact, source if is_as_said else None),
        importance=fact.importance,
        reinforced=fact.reinforced,
        first_said_at=fact.first_said,
        last_said_at=fact.last_said,
        valid_from=newest.start,
        valid_to=newest.end,
        intervals=as_periods(fact.intervals),
        expires_at=fact.expires_at,
        superseded_by=fact.superseded_by,
        merged_into=fact.merged_into,
        names=fact.names,
        asserted_by=source.asserted_by,
        extraction_method=source.method if is_as_said else MERGED,
        model=source.model,
        spec_version=source.spec_version,
        reasoning=source.reasoning,
        aliases=_kept(evidence[one].aliases for one in fact.evidence),
        topics=_kept(evidence[one].topics for one in fact.evidence),
    )


def _kept(given: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what every statement of a fact gave it, in an order that no arrival changes."""
    return tuple(sorted({one for several in given for one in several}))


def dedup_hash(avatar_id: str, fact_key: str, norm: str) -> str:
    """Return the digest of a value under its shown key; two dates of one event share it."""
    return hashlib.sha256(f"{avatar_id}:{fact_key}:{norm}".encode()).hexdigest()


def as_periods(intervals: Iterable[Interval]) -> tuple[Period, ...]:
    """Return ``intervals`` the way a multirange of half-open ranges holds them."""
    joined: list[Period] = []
    for start, end in sorted(((one.start, one.end) for one in intervals), key=_by_start):
        if start is not None and end is not None and end <= start:
            continue
        if joined and _touch(joined[-1], start):
            joined[-1] = (joined[-1][0], _later(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def _by_start(period: Period) -> tuple[bool, float]:
    return (period[0] is not None, period[0].timestamp() if period[0] is not None else 0.0)


def _touch(before: Period, start: datetime | None) -> bool:
    return start is None or before[1] is None or start <= before[1]


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)


def _content(fact: Fact, source: Assertion | None) -> str:
    """Return the sentence of the shown statement where it says what the fact is, else the vocabulary's."""
    if (
        source is not None
        and source.content
        and source.claim.mode is fact.mode
        and (source.effect is not Stance.HELD or fact.status is Status.SUPERSEDED)
    ):
        return source.content
    return sentence_of(fact.slot, fact.value, _STANCE[fact.mode])
