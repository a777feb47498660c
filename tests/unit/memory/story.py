"""A story: what was said, and what is remembered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.memory.assertions import (
    Assertion,
    Compatible,
    Judgement,
    Merge,
    Mode,
    Retraction,
    Rivals,
    Same,
    Stance,
)
from domain.memory.fold import Opinion
from domain.memory.projection import Fact
from domain.memory.slots import about_of, slot_of
from tests.unit.memory.builders import at, claim

DENIES, HELD, PLANS, FORGETS = Stance.DENIES, Stance.HELD, Stance.PLANS, Stance.FORGETS
SIGN = {Mode.HOLDS: "", Mode.DENIES: "not ", Mode.PLANS: "plan "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Statements with their sentences in ``name``, and the state expected of them."""

    name: str
    told: Sequence[Assertion]
    active: set[str]
    superseded: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    opinions: Sequence[Opinion] = ()
    commands: Sequence[Retraction] = ()
    questions: int = 0
    notes: int = 0


def shown(fact: Fact) -> str:
    """Write a fact as the tables below write it."""
    return f"{fact.slot}: {SIGN[fact.mode]}{fact.value}"


def judged(key: str, left: str, right: str, verdict: Same | Rivals | Compatible | Merge) -> Judgement:
    """Build the answer of a model about two values of one slot."""
    return Judgement(left=claim(key, left), right=claim(key, right), verdict=verdict)


NOW = at("2030-01-01")
SISTER_NAME = slot_of("name", about_of("sister"))
BADGE = "badge"
