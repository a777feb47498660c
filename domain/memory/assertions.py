"""The inputs of the fold: what was said, what was judged about it, what was taken back. All immutable."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final
from uuid import UUID, uuid5

from domain.memory.slots import Slot, arity_of
from domain.memory.stances import Mode, Stance
from domain.memory.values import EVERYTHING, normalise
from domain.memory.vocabulary import Arity

NAMESPACE: Final = UUID("6f2b8a52-0c64-5d0e-9b57-8c1e2f3d4a5b")

OrderKey = tuple[datetime, str, int, str]

__all__ = [
    "Also", "Amendment", "Assertion", "Authority", "Claim", "Compatible", "Corrects", "InsteadOf",
    "Judgement", "Merge", "Mode", "OrderKey", "Retraction", "RetractionKind", "Rivals", "Same", "Scope",
    "SlotLink", "Stance", "Verdict", "claim_id", "occurrence",
]  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """The identity of a possible fact: a value of a slot, and whether it is held, denied or planned."""

    slot: Slot
    norm: str
    mode: Mode = Mode.HOLDS


@dataclass(frozen=True, slots=True)
class Also:
    """Said as an addition: ends nothing that holds at that moment."""


@dataclass(frozen=True, slots=True)
class InsteadOf:
    """Said as a change from ``value``, which ends even where values may stand side by side."""

    value: str


@dataclass(frozen=True, slots=True)
class Corrects:
    """Takes ``value`` back as never true; None means the value said just before in the same slot."""

    value: str | None = None
    everywhere: bool = False


Amendment = Also | InsteadOf | Corrects


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory it is."""

    tenant: str
    user: str
    avatar: str

    def __str__(self) -> str:
        return f"{self.tenant}:{self.user}:{self.avatar}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One statement of one session: a row of evidence.

    What decides nothing (sentence, quotation, model, reasoning) travels along and is not compared. ``day`` is
    the day on which a dated event happened, where it happened; it is read off ``valid_from`` unless it is
    given, since a time that comes back from storage has another zone.
    """

    scope: Scope
    session_id: str
    generation: str = "live"
    position: int
    said_at: datetime
    slot: Slot
    value: str
    stance: Stance = Stance.HOLDS
    amends: Amendment | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    day: date | None = None
    expires_at: datetime | None = None
    confidence: float = 0.9
    importance: float = 5.0
    category: str = "fact"
    asserted_by: str = "user"
    message_ids: tuple[str, ...] = ()
    method: str = "llm"
    known_as: UUID | None = None

    content: str = field(default="", compare=False, repr=False)
    excerpt: str = field(default="", compare=False, repr=False)
    model: str | None = field(default=None, compare=False, repr=False)
    spec_version: str | None = field(default=None, compare=False, repr=False)
    reasoning: str = field(default="", compare=False, repr=False)
    aliases: tuple[str, ...] = field(default=(), compare=False, repr=False)
    topics: tuple[str, ...] = field(default=(), compare=False, repr=False)

    norm: str = field(init=False, compare=False, repr=False)
    effect: Stance = field(init=False, compare=False, repr=False)
    claim: Claim = field(init=False, compare=False, repr=False)
    order: OrderKey = field(init=False, compare=False, repr=False)
    assertion_id: UUID = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.said_at.tzinfo is None:
            raise ValueError("the event time of an assertion needs a zone")
        if self.valid_from is not None and self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError("a validity cannot end before it begins")
        if self.value == EVERYTHING and self.stance not in (Stance.DENIES, Stance.FORGETS):
            raise ValueError("everything in a slot can be denied or forgotten, not held")
        derive = object.__setattr__
        derive(self, "day", _day(self))
        derive(self, "norm", normalise(self.value))
        derive(self, "effect", _effect(self))
        derive(self, "claim", _claim(self))
        derive(
            self,
            "order",
            (self.said_at, self.session_id, self.position, "\x1f".join((*_text(self.claim), self.stance))),
        )
        derive(self, "assertion_id", _assertion_id(self))

    def __hash__(self) -> int:
        return hash(self.assertion_id)


def _effect(one: Assertion) -> Stance:
    """Read the dates: a start to come is a plan, an end gone by is past, and an event has no end."""
    if one.stance not in (Stance.HOLDS, Stance.HELD):
        return one.stance
    if one.valid_from is not None and one.valid_from > one.said_at:
        return Stance.PLANS
    if arity_of(one.slot) is Arity.EVENT:
        return Stance.HOLDS
    ended = one.valid_to is not None and one.valid_to <= one.said_at
    return Stance.HELD if ended else one.stance


def _day(one: Assertion) -> date | None:
    if one.valid_from is None or arity_of(one.slot) is not Arity.EVENT:
        return None
    return one.day or one.valid_from.date()


def _claim(one: Assertion) -> Claim:
    norm = one.norm if one.day is None else occurrence(one.norm, one.day)
    return Claim(one.slot, norm, _MODE[one.effect])


def _assertion_id(one: Assertion) -> UUID:
    """Name the row; the same statement of the same session has the same id for ever."""
    named = (str(one.scope), one.session_id, one.generation, str(one.position), *_text(one.claim), one.stance)
    return uuid5(NAMESPACE, "\x1f".join(named))


def _text(claim: Claim) -> tuple[str, ...]:
    return (claim.slot.about, claim.slot.key, claim.slot.qualifier, claim.norm, claim.mode)


def occurrence(norm: str, day: date) -> str:
    """Name one happening of a dated event."""
    return f"{norm} @ {day.isoformat()}"


_MODE: Final = {
    Stance.HOLDS: Mode.HOLDS,
    Stance.HELD: Mode.HOLDS,
    Stance.FORGETS: Mode.HOLDS,
    Stance.DENIES: Mode.DENIES,
    Stance.PLANS: Mode.PLANS,
}


@lru_cache(maxsize=65_536)
def claim_id(scope: Scope, claim: Claim) -> UUID:
    """Return the id that a fact has when ``claim`` is the first of its values to be said."""
    return uuid5(NAMESPACE, "\x1f".join((str(scope), *_text(claim))))


class Authority(IntEnum):
    """Who judged; the higher one wins."""

    DISTANCE = 0
    RULES = 1
    MODEL = 2
    OPERATOR = 3
    USER = 4


@dataclass(frozen=True, slots=True)
class Same:
    """Two wordings of one thing."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """Both cannot hold: the later statement ends the earlier one."""


@dataclass(frozen=True, slots=True)
class Compatible:
    """Both may hold."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Both may hold and are shown as one ``text`` while they do."""

    text: str


Verdict = Same | Rivals | Compatible | Merge


_CARE: Final[dict[type[Verdict], int]] = {Same: 0, Rivals: 1, Merge: 2, Compatible: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A cached answer about an unordered pair of claims; it never says which of them is the newer."""

    left: Claim
    right: Claim
    verdict: Verdict
    authority: Authority = Authority.MODEL
    decided_at: datetime | None = None
    note: str = ""

    @property
    def pair(self) -> tuple[Claim, Claim]:
        """The two claims in canonical order."""
        return (self.left, self.right) if self.left <= self.right else (self.right, self.left)

    @property
    def rank(self) -> tuple[int, float, int, str]:
        """The weight of the answer against another answer about the same pair; in doubt the careful one."""
        decided = self.decided_at.timestamp() if self.decided_at else 0.0
        return (self.authority, decided, _CARE[type(self.verdict)], repr(self.verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLink:
    """A cached answer whether two keys mean the same slot."""

    left: Slot
    right: Slot
    same: bool = True
    authority: Authority = Authority.MODEL

    @property
    def pair(self) -> tuple[Slot, Slot]:
        """The two slots in canonical order."""
        return (self.left, self.right) if self.left <= self.right else (self.right, self.left)


class RetractionKind(StrEnum):
    """What a command does with the evidence said up to its time."""

    FORGET = "forget"
    DISOWN = "disown"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """A command about one claim, by its id, or about a whole slot.

    A fact is deleted with one retraction for each of its names, so that it stays deleted when the session
    that gave it its id is erased. The row holds no value, only the id.
    """

    target: UUID | Slot
    at: datetime
    kind: RetractionKind = RetractionKind.FORGET
    source: str = "user"
