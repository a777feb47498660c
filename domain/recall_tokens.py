"""One tokenizer for all languages: the same words index a text and ask for it.

Text is folded by NFKC and case; words are runs of letters and digits; runs of scripts without spaces become
character bigrams; other words are stemmed by the language that the text's own function words and letters vote
for. Function words stay in the index and leave the query (docs/architecture/recall.md).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.function_words import FUNCTION_WORDS
from domain.ports import RecallText, Stemmer

#: An entry of the covering index holds this much beside a vector of 512 dimensions and the row's fields.
INDEX_BYTES: Final = 1_200

_WORD_CHARS: Final = 60
_ENTRY_BYTES: Final = 4
# Thai, Lao, Myanmar, Khmer; Kana, Han.
_UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
)
_RUN: Final = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_STARTS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_ENGLISH_ENDING: Final = re.compile(r"(?<=\w)['\u2019\u02bc](?:s|m|re|ve|ll|d|t)\b")
_DOT_ABOVE: Final = "\u0307"
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")
_UKRAINIAN: Final = re.compile("[\u0456\u0457\u0454\u0491]")
_UKRAINIAN_VOTES: Final = 2


def _languages_by_word() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in words:
            found[word] = (*found.get(word, ()), language)
    return found


_LANGUAGES: Final = _languages_by_word()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTokenizer:
    """Makes the words by which texts are found."""

    stemmer: Stemmer

    def __call__(self, text: str, language: str | None) -> RecallText:
        """Return the words of ``text`` for the index, and their number."""
        tokens = self.tokens_of(text, usual_language=language or "en")
        return RecallText(tokens=tokens, length=len(tokens))

    def tokens_of(
        self, text: str, *, usual_language: str = "en", limit: int = INDEX_BYTES
    ) -> tuple[str, ...]:
        """Return the distinct words of ``text`` for the index; their number is the ``dl`` of the row.

        Words are taken from the beginning until the entry they make would exceed ``limit`` bytes.
        """
        words = words_of(text)
        language = voted_language(words, usual_language)
        return _fitting(self._tokens(words, language), limit)

    def query_tokens_of(self, text: str, *, usual_language: str = "en") -> tuple[str, ...]:
        """Return the distinct words to ask for; a query of nothing but function words keeps them."""
        words = words_of(text)
        language = voted_language(words, usual_language)
        left_out = FUNCTION_WORDS.get(language, frozenset())
        telling = [word for word in words if word not in left_out]
        return tuple(dict.fromkeys(self._tokens(telling or words, language)))

    def _tokens(self, words: Sequence[str], language: str) -> Iterator[str]:
        stems = iter(self.stemmer.stem([word for word in words if not _is_unspaced(word)], language))
        for word in words:
            if _is_unspaced(word):
                yield from _bigrams(word)
            else:
                yield next(stems)[:_WORD_CHARS]


def words_of(text: str) -> list[str]:
    """Return the words of ``text`` in order, folded and unstemmed; unspaced runs stay whole."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace(_DOT_ABOVE, "")
    return _RUN.findall(_ENGLISH_ENDING.sub(" ", folded))


def voted_language(words: Iterable[str], usual: str = "en") -> str:
    """Return the language that function words and letters vote for; ties and silence go to ``usual``."""
    votes: Counter[str] = Counter()
    is_cyrillic = False
    for word in words:
        votes.update(_LANGUAGES.get(word, ()))
        if _CYRILLIC.search(word):
            is_cyrillic = True
            votes["uk"] += _UKRAINIAN_VOTES if _UKRAINIAN.search(word) else 0
    if is_cyrillic:
        return "uk" if votes["uk"] > votes["ru"] else "ru"
    del votes["ru"], votes["uk"]
    most = max(votes.values(), default=0)
    return usual if votes[usual] == most else max(votes, key=votes.__getitem__)


def _is_unspaced(word: str) -> bool:
    return _STARTS_UNSPACED.match(word) is not None


def _bigrams(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def _fitting(tokens: Iterable[str], limit: int) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    size = 0
    for token in tokens:
        if token in kept:
            continue
        size += _ENTRY_BYTES + len(token.encode("utf-8", "replace"))
        if size > limit:
            break
        kept[token] = None
    return tuple(kept)
