"""Lines and spells: one claim over time, and the periods in which it held."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.memory.assertions import (
    Assertion,
    OrderKey,
)
from domain.memory.relations import LineKey


class Cause(StrEnum):
    """Why a spell ended."""

    CHANGE = "change"
    DENIAL = "denial"
    ENDED = "ended"
    CONTRADICTION = "contradiction"
    FULFILLED = "fulfilled"
    SUBSUMED = "subsumed"
    FORGOTTEN = "forgotten"


@dataclass(slots=True, eq=False)
class Spell:
    """One period in which a line held."""

    start: datetime | None
    floor: datetime | None = None
    evidence: list[Assertion] = field(default_factory=list)
    last: Assertion | None = None
    short: bool = False
    closed_at: datetime | None = None
    closer: "Spell | None" = None
    cause: Cause | None = None
    by: "Line | None" = None
    disputes: "Line | None" = None

    @property
    def running(self) -> bool:
        """Say whether nothing has ended the spell."""
        return self.cause is None

    @property
    def last_at(self) -> datetime | None:
        """When it was last said to hold."""
        return self.last.said_at if self.last else None

    @property
    def end(self) -> datetime | None:
        """When the spell ended: at the start of what ended it, never before it was last said."""
        if self.running:
            return None
        end = self.closer.start if self.closer is not None else self.closed_at
        return latest(end, self.last_at)

    def add(self, statement: Assertion) -> None:
        """Take a statement that the line holds now."""
        self.evidence.append(statement)
        since = statement.valid_from
        if since is not None and self.start is not None and since < self.start:
            self.start = max(since, self.floor) if self.floor else since

    def close(self, cause: Cause, by: "Line | None", at: datetime, closer: "Spell | None" = None) -> None:
        """End the spell, at the start of ``closer`` where that spell begins with this end."""
        self.cause, self.by, self.closed_at, self.closer = cause, by, at, closer

    def confirm(self, statement: Assertion) -> None:
        """Take a statement that counts as the last word."""
        self.add(statement)
        self.short = self.short and statement.expires_at is not None
        self.last = statement


@dataclass(slots=True, eq=False)
class Line:
    """One claim over time."""

    key: LineKey
    cutoff: OrderKey | None
    spells: list[Spell] = field(default_factory=list)
    weak: list[Assertion] = field(default_factory=list)
    waiting: list[Assertion] = field(default_factory=list)

    @property
    def spell(self) -> Spell | None:
        """The spell that runs, if one does."""
        return self.spells[-1] if self.spells and self.spells[-1].running else None

    def hides(self, statement: Assertion) -> bool:
        """Say whether a command to forget covers ``statement``."""
        return self.cutoff is not None and statement.order <= self.cutoff

    def close_hidden(self, statement: Assertion | None) -> None:
        """End a running spell that was forgotten before ``statement`` was said."""
        spell, seen = self.spell, statement is not None and self.hides(statement)
        if spell is None or spell.last is None or seen or self.cutoff is None or not self.hides(spell.last):
            return
        spell.close(Cause.FORGOTTEN, None, self.cutoff[0])


def latest(*times: datetime | None) -> datetime | None:
    """Return the latest of the times that are known."""
    known = [time for time in times if time is not None]
    return max(known, default=None)
