from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

import pytest

from clients.language import FastTextLanguageGuesser
from domain.candidates import Candidate
from domain.conversation import Message
from domain.memory.assertions import Corrects
from domain.memory.stances import Stance
from domain.memory.values import normalise
from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.extractor import RuleExtractor
from domain.windows import Window

Turns = str | Sequence[tuple[str, str]]
Facts = Callable[[Turns], set[str]]
Read = Callable[[Turns], list[Candidate]]

AT = datetime.fromisoformat("2025-06-15T10:00:00+02:00")
SIGNS = {
    Stance.HOLDS: "",
    Stance.DENIES: "not ",
    Stance.HELD: "was ",
    Stance.PLANS: "plans ",
    Stance.FORGETS: "-",
}


def window(turns: Turns, at: datetime = AT, *, timezone: str | None = None) -> Window:
    """A conversation as one window; a plain string is one message of the user."""
    listed = [("user", turns)] if isinstance(turns, str) else turns
    messages = tuple(
        Message(message_id=f"m{place}", position=place, role=role, content=text, sent_at=at)
        for place, (role, text) in enumerate(listed)
    )
    return Window(
        session_id=UUID(int=1),
        index=0,
        messages=messages,
        overlap=0,
        ended_at=at,
        timezone=timezone,
        language=None,
    )


def shown(candidate: Candidate) -> str:
    """``was home_city=Cairo``, ``sister/olga.home_city=Bergen``."""
    about = "" if candidate.about == "self" else f"{candidate.about}."
    qualifier = f"{candidate.qualifier}_" if candidate.qualifier else ""
    return f"{SIGNS[candidate.stance]}{about}{qualifier}{candidate.key}={candidate.value}"


@pytest.fixture(scope="session")
def extractor() -> RuleExtractor:
    return RuleExtractor(vocabulary=builtin_vocabulary(), languages=FastTextLanguageGuesser())


@pytest.fixture(scope="session")
def read(extractor: RuleExtractor) -> Read:
    return lambda turns: extractor.read(window(turns))


@pytest.fixture(scope="session")
def facts(read: Read) -> Facts:
    """What is left of a conversation when its own corrections are applied: confident candidates only."""

    def left(turns: Turns) -> set[str]:
        found = [one for one in read(turns) if one.confidence >= 0.65]
        slips = {normalise(one.amends.value or "") for one in found if isinstance(one.amends, Corrects)}
        return {
            shown(one)
            for one in found
            if one.stance is not Stance.FORGETS and normalise(one.value) not in slips
        }

    return left
