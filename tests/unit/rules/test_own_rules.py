import pytest

from clients.language import FastTextLanguageGuesser
from domain.errors import InvalidInputError
from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.extractor import RuleExtractor
from domain.rules.loading import LANGUAGES, rule_names
from domain.rules.own_file import assure_known, read_own_rules
from domain.rules.own_rules import OwnRules
from tests.unit.rules.conftest import shown, window

VOCABULARY = builtin_vocabulary()
RULE = """
[[rules]]
name = "mascot"
language = "en"
slot = "pet_name"
say = ["{my} mascot is"]
kind = "person"
"""


def extractor(rules: OwnRules) -> RuleExtractor:
    return RuleExtractor(vocabulary=VOCABULARY, languages=FastTextLanguageGuesser(), rules=rules)


def test_a_rule_of_the_operators_own_is_read_and_named() -> None:
    found = extractor(read_own_rules(RULE, VOCABULARY)).read(window("I live in Pisa. My mascot is Bruno."))

    assert [shown(one) for one in found] == ["home_city=Pisa", "pet_name=Bruno"]
    assert found[1].reasoning.startswith("rule en/mascot:")


def test_a_rule_that_is_off_proposes_nothing_and_the_others_go_on() -> None:
    said = window("I live in Pisa. I'm allergic to pollen.")
    name = extractor(OwnRules()).read(said)[0].reasoning.split(":")[0].removeprefix("rule ")

    found = extractor(OwnRules(off=frozenset({name}))).read(said)

    assert [shown(one) for one in found] == ["allergy=pollen"]


def test_candidates_tell_the_version_of_the_rules_that_made_them() -> None:
    said = window("I live in Pisa.")
    plain = extractor(OwnRules()).read(said)[0].spec_version
    own = extractor(read_own_rules(RULE, VOCABULARY)).read(said)[0].spec_version
    less = extractor(OwnRules(off=frozenset({"en/likes-1"}))).read(said)[0].spec_version

    assert plain is not None
    assert plain.startswith("rules-1+")
    assert len({plain, own, less}) == 3
    assert extractor(OwnRules()).read(said)[0].spec_version == plain


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('slot = "pet_name"', 'slot = "mascot"'), "slot: 'mascot' is none"),
        (('language = "en"', 'language = "it"'), "language: 'it' is none"),
        (('kind = "person"', 'kind = "animal"'), "kind: 'animal' is none"),
        (('kind = "person"', "confidence = 2"), "confidence: "),
        (('kind = "person"', 'colour = "red"'), "colour: no such field"),
        (('kind = "person"', 'allow = ["joke"]'), "allow: 'joke' is none"),
        (('name = "mascot"', 'name = "My mascot"'), "name: small letters"),
        (('name = "mascot"', 'name = "home_city-1"'), "two rules have the name 'en/home_city-1'"),
        (('say = ["{my} mascot is"]', "say = []"), "say: a pattern is needed"),
        (("{my} mascot is", "{my} (?:a|b)* is"), "repeats without an end"),
        (("{my} mascot is", "{nobody} mascot is"), "no such macro"),
        (("{my} mascot is", "{my} (mascot is"), "say: "),
        (("{my} mascot is", "(?:mascot)?"), "matches an empty clause"),
        (("[[rules]]", "[rules]"), "[[rules]] is a list of tables"),
        (("[[rules]]", "[[rule]]"), "rule: no such field"),
        (('"mascot"', "mascot"), "at line 3"),
    ],
)
def test_a_wrong_file_is_refused_with_its_entry(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_own_rules(RULE.replace(*change), VOCABULARY)

    assert complaint in str(refused.value)


def test_an_unknown_name_cannot_be_switched_off() -> None:
    with pytest.raises(InvalidInputError, match="no rule has the name 'en/nothing-1'"):
        assure_known(["en/home_city-1", "en/nothing-1"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_of_the_package_has_a_name_of_its_own(language: str) -> None:
    names = rule_names(language)

    assert len(names) == len(set(names)) > 10
    assert all(name.startswith(f"{language}/") for name in names)
