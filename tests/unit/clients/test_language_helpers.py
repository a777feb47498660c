"""The helpers for language work without a network and on any text."""

import pytest

from clients.language import FastTextLanguageGuesser
from clients.stemming import SnowballStemmer


@pytest.fixture(scope="module")
def guesser() -> FastTextLanguageGuesser:
    return FastTextLanguageGuesser()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I work as a nurse in Leeds", "en"),
        ("Ich wohne seit März in Berlin", "de"),
        ("我住在上海", "zh"),
        ("я живу в Москве", "ru"),
    ],
)
def test_the_language_of_a_short_text_is_guessed(
    guesser: FastTextLanguageGuesser, text: str, language: str
) -> None:
    found = guesser.guess(text)

    assert max(found, key=found.__getitem__) == language
    assert len(found) <= 5


@pytest.mark.parametrize("text", ["", " \n\t ", "\ud800", "\x00", "a\nb" * 5_000, "12345"])
def test_any_text_is_guessed_or_left_open(guesser: FastTextLanguageGuesser, text: str) -> None:
    assert all(0 <= share <= 1 for share in guesser.guess(text).values())


def test_words_are_cut_to_their_stems() -> None:
    stemmer = SnowballStemmer()

    assert stemmer.stem(["running", "cats"], "en") == ["run", "cat"]
    assert stemmer.stem(["кошки"], "uk") == ["кошки"]
    assert stemmer.stem([], "de") == []
