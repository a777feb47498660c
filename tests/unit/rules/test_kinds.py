"""Which words are a value of a kind, read by the English rules."""

import pytest

from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.loading import load_rulebook, rule_text
from domain.rules.rulebook import Rulebook
from domain.rules.values import ValueReader


@pytest.fixture(scope="module")
def book() -> Rulebook:
    return load_rulebook(rule_text("en"), builtin_vocabulary())


CASED = [
    ("Rome and I like it", "place", ["Rome"]),
    ("the Netherlands", "place", ["Netherlands"]),
    ("Isle of Wight with many people", "place", ["Isle of Wight"]),
    ("hope", "place", []),
    ("the Alps", "place_strict", ["Alps"]),
    ("my head", "place_strict", []),
    ("Maria de la Cruz", "person", ["Maria de la Cruz"]),
    ("tired", "person_strict", []),
    ("Happy", "person_strict", []),
    ("nurse at a clinic", "job", ["nurse"]),
    ("bird lover", "job", []),
    ("glass blower", "job_said", ["glass blower"]),
    ("34 years old", "age", ["34"]),
    ("300", "age", []),
    ("forty", "age", ["forty"]),
    ("12 and 9", "ages", ["12 and 9"]),
    ("old", "ages", []),
    ("4 things", "number", ["4"]),
    ("many", "number", []),
    ("180 cm", "measure", ["180 cm"]),
    ("tall", "measure", []),
    ("a.b@example.org please", "email", ["a.b@example.org"]),
    ("nobody", "email", []),
    ("+43 660 123 45 67", "phone", ["+43 660 123 45 67"]),
    ("none yet", "phone", []),
    ("March 3", "date", ["March 3"]),
    ("3/4/1990", "date", ["3/4/1990"]),
    ("a secret", "date", []),
    ("---", "date", []),
    ("fluent German", "language", ["German"]),
    ("Klingonese", "language", []),
    ("12 Elm Row, Perth", "address", ["12 Elm Row, Perth"]),
    ("far away", "address", []),
    ("Acme and Sons", "org", ["Acme and Sons"]),
    ("the local bakery", "org", ["the local bakery"]),
    ("War and Peace", "title", ["War and Peace"]),
    ("the acoustic guitar", "instrument", ["the acoustic guitar"]),
    ("the fool", "instrument", []),
    ("ice hockey", "sport", ["ice hockey"]),
    ("small dog", "pet", ["small dog"]),
    ("small house", "pet", []),
    ("night", "word", ["night"]),
    ("far too many of them", "word", []),
]

LOWER = [
    ("portland, oregon", "place", ["portland, oregon"]),
    ("dublin and i like it", "place", ["dublin"]),
    ("a small town", "place", []),
    ("paris", "place_strict", ["paris"]),
    ("nowhere special", "place_strict", []),
    ("maria", "person", ["maria"]),
    ("very tired today", "person", []),
]

LISTS = [
    ("tea and cake", "thing", ["tea", "cake"]),
    ("action and comedy movies", "thing", ["action and comedy movies"]),
    ("walking near lakes and hills", "thing", ["walking near lakes and hills"]),
    ("the quiet and dark style", "thing", ["the quiet and dark style"]),
    ("bands like Muse and Blur", "thing", ["Muse", "Blur"]),
    ("tea, it and cake", "thing", ["tea"]),
    ("a dog, a house and a cat", "pet", ["a dog", "a cat"]),
]


@pytest.mark.parametrize(("rest", "kind", "expected"), CASED)
def test_words_are_read_by_their_kind(book: Rulebook, rest: str, kind: str, expected: list[str]) -> None:
    assert ValueReader(book, cased=True).read(rest, kind, many=False) == expected


@pytest.mark.parametrize(("rest", "kind", "expected"), LOWER)
def test_small_letters_are_read_where_nobody_writes_capitals(
    book: Rulebook, rest: str, kind: str, expected: list[str]
) -> None:
    assert ValueReader(book, cased=False).read(rest, kind, many=False) == expected


@pytest.mark.parametrize(("rest", "kind", "expected"), LISTS)
def test_lists_are_cut_where_their_items_stand_alone(
    book: Rulebook, rest: str, kind: str, expected: list[str]
) -> None:
    assert ValueReader(book, cased=True).read(rest, kind, many=True) == expected
