"""A year of one user as a story: what is said in 200 conversations, and what is to be remembered of it.

What is expected is kept by a few lines that know nothing of the fold: where the user lives and works and
what they like, from when to when.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from domain.arrivals import EndedConversation
from tests.integration.storage.stores import ended

CITIES: Final = ("Porto", "Lyon", "Berlin", "Madrid", "Vienna", "Oslo")
EMPLOYERS: Final = ("Siemens", "Bosch", "Renault", "Airbus")
THINGS: Final = ("jazz", "sushi", "yoga", "karaoke", "tennis")

_BEGINS: Final = datetime(2024, 1, 1, 9, tzinfo=UTC)
# More than a day: whoever says two things within one is asked which of them holds.
_STEP: Final = timedelta(hours=43, minutes=48)
_SESSIONS: Final = 200

_SAYINGS: Final = {
    "en": {
        "home_city": "I live in {} now.",
        "employer": "I work at {}.",
        "left": "I no longer work at {}.",
        "likes": "I love {}.",
        "dislikes": "I can't stand {} any more.",
        "nothing": "What would be a good name for a small boat?",
    },
    "de": {
        "home_city": "Ich wohne jetzt in {}.",
        "employer": "Ich arbeite bei {}.",
        "left": "I no longer work at {}.",
        "likes": "Ich mag {}.",
        "dislikes": "Ich hasse {}.",
        "nothing": "Wie kocht man eigentlich Reis?",
    },
    "fr": {
        "home_city": "J'habite maintenant à {}.",
        "employer": "Je travaille chez {}.",
        "left": "I no longer work at {}.",
        "likes": "J'adore le {}.",
        "dislikes": "Je n'aime plus le {}.",
        "nothing": "Quelle est la capitale du Canada ?",
    },
}
_KINDS: Final = {"home_city": 4, "employer": 3, "left": 1, "likes": 5, "dislikes": 4, "slip": 2, "nothing": 1}

Line = tuple[str, str, str]
"""The key of a slot, the value, and ``holds`` or ``denies``."""

Period = tuple[datetime, datetime | None]


@dataclass(slots=True)
class Year:
    """The conversations in the order in which they took place, and the periods in which each thing was so."""

    conversations: list[EndedConversation] = field(default_factory=list)
    periods: dict[Line, list[Period]] = field(default_factory=lambda: defaultdict(list))

    def begins(self, line: Line, at: datetime) -> None:
        """From ``at`` on it is so, unless it has been."""
        if not self.is_so(line):
            self.periods[line].append((at, None))

    def ends(self, line: Line, at: datetime) -> None:
        """From ``at`` on it is not so any more."""
        if self.is_so(line):
            self.periods[line][-1] = (self.periods[line][-1][0], at)

    def is_so(self, line: Line) -> bool:
        """Say whether it is so at the moment."""
        return bool(self.periods.get(line)) and self.periods[line][-1][1] is None

    def now(self, key: str) -> str | None:
        """Return the only value of ``key`` that is so at the moment."""
        return next((line[1] for line in self.periods if line[0] == key and self.is_so(line)), None)


def a_year(seed: int) -> Year:
    """Tell a year: moves, jobs taken and left, tastes that flip and return, slips, small talk."""
    chance, year = random.Random(seed), Year()  # noqa: S311 - a story
    for number in range(_SESSIONS):
        at = _BEGINS + number * _STEP
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        text = _told(year, kind, at, chance)
        year.conversations.append(ended(f"year-{seed}-{number}", text, at=at))
    return year


def _told(year: Year, kind: str, at: datetime, chance: random.Random) -> str:
    """Let ``kind`` happen at ``at``; return how the user says so."""
    says = _SAYINGS[chance.choice(list(_SAYINGS))]
    match kind:
        case "home_city" | "employer":
            value = chance.choice(CITIES if kind == "home_city" else EMPLOYERS)
            _moves(year, kind, value, at)
            return says[kind].format(value)
        case "left":
            employer = year.now("employer")
            if employer is None:
                return says["nothing"]
            year.ends(("employer", employer, "holds"), at)
            return says["left"].format(employer)
        case "slip":
            meant = chance.choice(CITIES)
            slip = chance.choice([city for city in CITIES if city not in (meant, year.now("home_city"))])
            # What is taken back was never so; what was meant was said with it.
            _moves(year, "home_city", meant, at)
            return f"I live in {slip}. Sorry, I meant {meant}."
        case "likes" | "dislikes":
            thing = chance.choice(THINGS)
            now, before = ("holds", "denies") if kind == "likes" else ("denies", "holds")
            year.ends(("likes", thing, before), at)
            year.begins(("likes", thing, now), at)
            return says[kind].format(thing)
        case _:
            return says["nothing"]


def _moves(year: Year, key: str, value: str, at: datetime) -> None:
    before = year.now(key)
    if before is not None and before != value:
        year.ends((key, before, "holds"), at)
    year.begins((key, value, "holds"), at)
