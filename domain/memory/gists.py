"""When two wordings of a value are one: what rules can prove without a model.

An article never matters. Inflection, abbreviations and a few synonyms do not where a value is an ordinary
word, as a like or a habit is, and not a name. Under a key that nobody knows, where a value is a phrase,
neither does the order of its words, nor how an inability is put. Two values of one gist are joined as if
rules had judged them the same; a judgement against it counts more, and so does every guard of ``values``
(docs/architecture/memory-model.md, "Wordings").
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Protocol

from domain.memory.slots import Slot, arity_of
from domain.memory.vocabulary import Arity, builtin_vocabulary

Gist = Callable[[Slot, str], str]

_WORD: Final = re.compile(r"[^\W_]+")
_LATIN: Final = re.compile(r"[a-z\u00df-\u024f0-9]+")
_CANNOT: Final = "\u00accan"
_SHORTEST_STEMMED: Final = 4
#: Categories whose values are ordinary words; in the others they are names of people, places, firms as well.
_ORDINARY: Final = frozenset({"preference", "food", "behavior", "routine", "expertise", "goal", "health"})
_ENDINGS: Final = frozenset({"", "s", "es", "ed", "d", "ing", "e"})
_ENDINGS_OF_Y: Final = frozenset({"y", "ies", "ied", "ying"})


class _Kind(Enum):
    """What the values of a slot are like."""

    NAME = auto()
    WORD = auto()
    PHRASE = auto()


class Stems(Protocol):
    """Cuts words to their stems."""

    def stem(self, words: Sequence[str], language: str) -> list[str]:
        """Return the stems of ``words``."""
        ...


class Gists:
    """Says what a value comes down to; values of one slot with the same gist are one."""

    def __init__(self, stemmer: Stems) -> None:
        self._stemmer = stemmer
        words: dict[str, Any] = tomllib.loads(
            (files("domain.memory") / "wordings.toml").read_text(encoding="utf-8")
        )
        self._articles = frozenset(words["articles"])
        self._small = self._articles | frozenset(words["small"])
        self._ordering = frozenset(words["ordering"])
        self._same: dict[str, str] = {**words["abbreviations"], **words["synonyms"]}
        self._inability = frozenset(tuple(phrase.split()) for phrase in words["inability"])
        self._longest = max(map(len, self._inability))
        self._of = lru_cache(maxsize=65_536)(self._gist)

    def __call__(self, slot: Slot, norm: str) -> str:
        """Return the gist of the normal form ``norm`` as a value of ``slot``."""
        return self._of(norm, _kind_of(slot))

    def _gist(self, norm: str, kind: _Kind) -> str:
        words = _WORD.findall(norm)
        if not all(_LATIN.fullmatch(word) for word in words):
            return norm
        if kind is _Kind.PHRASE:
            return " ".join(self._phrase(words)) or norm
        bare = (word for word in words if word not in self._articles)
        return " ".join(bare if kind is _Kind.NAME else map(self._word, bare)) or norm

    def _phrase(self, words: Sequence[str]) -> Sequence[str]:
        told = [self._word(word) for word in self._with_inabilities(words) if word not in self._small]
        return told if self._ordering.intersection(told) else sorted(set(told))

    def _word(self, word: str) -> str:
        """Return the word that stands for ``word``: its base where nothing but an ending was taken off."""
        word = self._same.get(word, word)
        if len(word) < _SHORTEST_STEMMED or not word.isalpha() or word in self._ordering:
            return word
        stem, of_singular = self._stemmer.stem([word, word.removesuffix("s")], "en")
        singular = word.removesuffix("s") if stem == of_singular else word
        if singular in self._same:
            return self._same[singular]
        is_inflected = singular.startswith(stem) and singular[len(stem) :] in _ENDINGS
        ending = singular[len(stem) - 1 :] if singular.startswith(stem[:-1]) else ""
        is_of_y = stem.endswith("i") and ending in _ENDINGS_OF_Y
        return self._same.get(stem, stem) if is_inflected or is_of_y else singular

    def _with_inabilities(self, words: Sequence[str]) -> Iterator[str]:
        """Put one word in the place of each phrase that says that something cannot be done."""
        place = 0
        while place < len(words):
            sizes = range(self._longest, 0, -1)
            size = next((size for size in sizes if tuple(words[place : place + size]) in self._inability), 0)
            yield _CANNOT if size else words[place]
            place += size or 1


def _kind_of(slot: Slot) -> _Kind:
    arity = arity_of(slot)
    if arity is Arity.FREE:
        return _Kind.PHRASE
    found = builtin_vocabulary().described(slot.key) if arity is Arity.MANY else None
    return _Kind.WORD if found is not None and found[0].category in _ORDINARY else _Kind.NAME
