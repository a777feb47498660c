"""Wordings that rules can prove to be one are one fact, and nothing else is."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.stemming import SnowballStemmer
from domain.memory.assertions import Compatible, Judgement
from domain.memory.fold import Opinion, fold
from domain.memory.gists import Gists
from domain.memory.slots import slot_of
from domain.memory.timeline import Rules
from domain.memory.values import normalise
from tests.unit.memory.builders import said
from tests.unit.memory.histories import COMMANDS, OPINIONS, Taken, Told, statements

GIST = Gists(SnowballStemmer())
RULES = Rules(gist=GIST)
PHRASE, LIKES, CITY, PET = map(slot_of, ("portal_trouble", "likes", "home_city", "pet"))

SIX_WORDINGS = (
    "cannot open portal attachments",
    "can't open attachments in the portal",
    "unable to open attachments on the portal",
    "portal attachments won't open",
    "Opening attachments in the portal fails",
    "trouble opening the portal's attachments",
)
REWORDED = ("apple", "apples", "an apple", "x 15", "the x 15", "x 17", "dog", "the dogs")


def values(*texts: str, slot: str = "portal_trouble") -> list[str]:
    told = [said(f"2024-01-{day:02}", slot, text) for day, text in enumerate(texts, start=1)]
    return [fact.value for fact in fold(told, rules=RULES).active()]


def test_six_wordings_of_one_complaint_are_one_fact_said_six_times() -> None:
    told = [said(f"2024-01-{day:02}", PHRASE, text) for day, text in enumerate(SIX_WORDINGS, start=1)]

    (fact,) = fold(told, rules=RULES).active()

    assert fact.value == SIX_WORDINGS[-1]
    assert fact.reinforced == 5


@pytest.mark.parametrize(
    ("slot", "one", "other"),
    [
        (LIKES, "dogs", "a dog"),
        (LIKES, "old movies", "old film"),
        (LIKES, "cities", "the city"),
        (CITY, "the Hague", "Hague"),
        (PHRASE, "apartment with 2 rooms", "2 room flat"),
        (PHRASE, "attachment", "attachments"),
    ],
)
def test_articles_endings_and_synonyms_do_not_matter(slot: object, one: str, other: str) -> None:
    assert GIST(slot, normalise(one)) == GIST(slot, normalise(other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slot", "one", "other"),
    [
        ("portal_trouble", "moved from Porto to Leeds", "moved from Leeds to Porto"),
        ("likes", "university", "universe"),
        ("likes", "coffee with milk", "coffee without milk"),
        ("likes", "dog", "no dog"),
        ("pet", "a cat called Woods", "a cat called Wood"),
        ("pet", "a cat called James John", "a cat called John James"),
        ("likes", "花生", "花"),
    ],
)
def test_what_only_looks_alike_stays_apart(slot: str, one: str, other: str) -> None:
    assert len(values(one, other, slot=slot)) == 2


def test_a_judgement_keeps_apart_what_rules_would_join() -> None:
    one, other = said("2024-01-01", LIKES, "apples"), said("2024-01-02", LIKES, "the apple")
    apart: list[Opinion] = [Judgement(left=one.claim, right=other.claim, verdict=Compatible())]

    assert len(fold([one, other], rules=RULES).active()) == 1
    assert len(fold([one, other], apart, rules=RULES).active()) == 2


@given(statements(values=REWORDED), OPINIONS, COMMANDS, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter_among_wordings(
    told: Told, opinions: list[Opinion], commands: Taken, random: Random
) -> None:
    mixed = told + random.sample(told, random.randint(0, len(told)))
    random.shuffle(mixed)

    assert fold(mixed, opinions, commands, RULES) == fold(told, opinions, commands, RULES)


@given(st.text())
def test_any_text_has_a_gist(text: str) -> None:
    for slot in (PHRASE, LIKES, CITY, PET):
        assert GIST(slot, normalise(text)) == GIST(slot, normalise(text))
        assert GIST(slot, normalise(text)) or not normalise(text)
