import re
import time

import pytest

from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.kinds import KINDS
from domain.rules.loading import LANGUAGES, function_words, load_rulebook, rule_text

VOCABULARY = builtin_vocabulary()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_slot_of_a_rule_file_is_in_the_vocabulary(language: str) -> None:
    book = load_rulebook(rule_text(language), VOCABULARY)

    known = {*VOCABULARY.slots, *VOCABULARY.patterns}
    named = set(re.findall(r'(?m)^slot = "([^"]+)"', rule_text(language)))
    assert book.language == language
    assert named <= known
    assert {target.slot for target in book.forget} <= {*known, "*"}
    assert {one.split(".")[1 if one.startswith("about.") else 0] for one in book.contents} <= known


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pattern_compiles_and_matches_no_empty_clause(language: str) -> None:
    book = load_rulebook(rule_text(language), VOCABULARY)

    for rule in book.rules:
        assert rule.kind in KINDS or rule.kind in {"thing", "food", "text"}
        assert not any(rule.phrases[place].match("") for place in range(len(rule.phrases)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_rules_have_names_of_their_own(language: str) -> None:
    names = [rule.name for rule in load_rulebook(rule_text(language), VOCABULARY).rules]

    assert len(names) == len(set(names))


def test_a_rule_about_an_unknown_slot_is_refused() -> None:
    text = rule_text("en").replace('slot = "home_city"', 'slot = "no_such_slot"', 1)

    with pytest.raises(KeyError, match="no_such_slot"):
        load_rulebook(text, VOCABULARY)


def test_english_is_there_quickly() -> None:
    start = time.perf_counter()
    load_rulebook(rule_text("en"), VOCABULARY)

    assert time.perf_counter() - start < 0.4


def test_small_words_are_known_without_reading_the_rules() -> None:
    assert "the" in function_words("en")
    assert function_words("ja") == frozenset()
