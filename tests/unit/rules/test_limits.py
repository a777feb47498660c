import tomllib

import pytest

from domain.rules.limits import LONGEST_PATTERN, UnboundedPatternError, assure_bounded
from domain.rules.loading import LANGUAGES, rule_text


@pytest.mark.parametrize(
    "pattern",
    ["(?:a|b)*", "(?:a )+b", "(?:a){2,}", "(?:[a-z]+ ){0,40}", r"(a)\1", "(?P<x>a)(?P=x)", "a" * 5000],
)
def test_a_pattern_without_a_bound_is_refused(pattern: str) -> None:
    with pytest.raises(UnboundedPatternError):
        assure_bounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "{I} {adv}? live in",
        r"(?:[\w-]+ ){0,3}car",
        r"\(\w+\)*",
        "[)*]+",
        "(?:a|b)?",
        "(?=x)",
        "[]a)]*",
        "a{2,}",
    ],
)
def test_a_pattern_whose_brackets_end_is_taken(pattern: str) -> None:
    assure_bounded(pattern)


def test_the_longest_pattern_is_taken() -> None:
    assure_bounded("a" * LONGEST_PATTERN)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pattern_of_the_package_is_bounded(language: str) -> None:
    for rule in tomllib.loads(rule_text(language))["rules"]:
        for pattern in rule["say"]:
            assure_bounded(pattern)
