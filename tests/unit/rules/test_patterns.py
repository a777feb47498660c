import pytest

from domain.rules.patterns import PatternCompiler, first_words, needed_words, tokens

COMPILER = PatternCompiler({"I": "i", "Im": "(?:i am|i'm)", "adv": "(?:now|still)"}, spaced=True)


@pytest.mark.parametrize(
    ("pattern", "text", "rest"),
    [
        ("{I} {adv}? live in", "I live in Oslo", "Oslo"),
        ("{I} {adv}? live in", "i now live in Oslo", "Oslo"),
        ("{I} {adv}? live in", "I liver in Oslo", None),
        ("{Im} an? cook", "I'm a cook", ""),
        ("{Im} an? cook", "I'm an cook", ""),
        ("{Im} (?:really )?tall $", "i'm really tall.", ""),
        ("{Im} tall $", "i'm tall and slim", None),
        ("{I} use (?=[A-Z])", "I use Vim", "Vim"),
        ("{I} use (?=[A-Z])", "I use vim", None),
        ("{I} eat (?!meat)", "I eat meat", None),
    ],
)
def test_a_pattern_matches_whole_words_at_the_start(pattern: str, text: str, rest: str | None) -> None:
    match = COMPILER.compile(pattern).match(text)

    assert (text[match.end() :] if match else None) == rest


def test_named_places_become_groups() -> None:
    match = COMPILER.compile("{value} is my (?:only )?hobby").match("fishing is my hobby")

    assert match
    assert match["value"] == "fishing"


def test_tokens_are_split_outside_brackets_only() -> None:
    assert tokens("{I} (?:a b|c d)? live") == ["{I}", "(?:a b|c d)?", "live"]


def test_short_cuts_follow_from_the_patterns() -> None:
    assert first_words(["{I} run", "we run"], {"{I}": "i", "we": "we"}) == frozenset({"i", "we"})
    assert first_words(["{x} run"], {"{I}": "i"}) is None
    assert needed_words(["{I} (?:run|jog) fast", "{I} swim"]) == frozenset({"run", "jog", "swim"})
    assert needed_words(["{I} {adv}?"]) is None


def test_an_unknown_macro_is_refused() -> None:
    with pytest.raises(KeyError):
        COMPILER.compile("{nobody} runs")
