"""Which language a passage is in, and so which rules may read it."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from domain.ports import LanguageGuesser

_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_FEW_LETTERS: Final = 24
_SURE: Final = 0.75
_CLEARLY_FIRST: Final = (0.12, 1.4)  # at least this likely, and so many times the second
_LIKELY: Final = 0.25
_POSSIBLE: Final = 0.02
_ENOUGH_FUNCTION_WORDS: Final = 1 / 3
_HEAD: Final = 2000
_LONG_HEAD: Final = 3000


class PassageLanguage:
    """Names the language of a passage; one that has no rules is None, so nothing is read from it."""

    def __init__(
        self, guesser: LanguageGuesser, function_words: Callable[[], Mapping[str, frozenset[str]]]
    ) -> None:
        self._guesser = guesser
        self._function_words = function_words

    def main(self, text: str) -> str | None:
        """Return the language that most of ``text`` is in."""
        return self._detect(text[:_LONG_HEAD]) if _LETTER.search(text) else None

    def of(self, text: str, main: str | None) -> str | None:
        """Return the language of ``text``; a short text follows the conversation's ``main`` language."""
        text = text[:_HEAD]
        is_short = len(_LETTER.findall(text)) < _FEW_LETTERS
        if main is not None and is_short and not _HAN.search(text) and not _KANA.search(text):
            return main
        return self._detect(text)

    def _detect(self, text: str) -> str | None:
        by_script = _by_script(text)
        if by_script is not None:
            return by_script if by_script in self._function_words() else None
        guesses = self._guesser.guess(text)
        first = max(guesses, key=lambda name: guesses[name], default="")
        by_words = self._by_function_words(text, first)
        is_doubtful = by_words not in (None, first) and guesses.get(first, 0.0) < _SURE
        if first in self._function_words() and guesses[first] > _LIKELY and not is_doubtful:
            return first
        if by_words and (guesses.get(by_words, 0.0) > _POSSIBLE or guesses.get(first, 0.0) < _SURE):
            return by_words
        return first if first in self._function_words() and _is_clear(guesses) else None

    def _by_function_words(self, text: str, first: str) -> str | None:
        """Return the language whose small words make up a third of ``text``; ``first`` breaks ties."""
        words = [word.casefold() for word in _WORD.findall(text)]
        shares = {
            name: sum(word in known for word in words) / max(1, len(words))
            for name, known in self._function_words().items()
            if known
        }
        best = max(shares, key=lambda name: (shares[name], name == first), default=None)
        return best if best is not None and shares[best] >= _ENOUGH_FUNCTION_WORDS else None


def _is_clear(guesses: Mapping[str, float]) -> bool:
    """Tell whether a few words that could be much are most likely in the first language."""
    first, second = sorted((*guesses.values(), 0.0, 0.0), reverse=True)[:2]
    least, times = _CLEARLY_FIRST
    return first >= least and first >= times * second


def _by_script(text: str) -> str | None:
    letters = max(1, len(_LETTER.findall(text)))
    if len(_KANA.findall(text)) > 0.25 * letters:
        return "ja"
    if len(_HAN.findall(text)) > 0.3 * letters:
        return "zh"
    return None
