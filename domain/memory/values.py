"""Values as text: one normal form, and the guards that keep two different things apart."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

EVERYTHING: Final = "*"

_SPACE: Final = re.compile(r"\s+")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_PART: Final = re.compile(r"\s*[,;]\s*")

_RELATION_WORDS: Final = frozenset({
    "wife", "husband", "partner", "mother", "father", "mum", "dad", "sister", "brother", "son", "daughter",
    "child", "aunt", "uncle", "cousin", "niece", "nephew", "grandmother", "grandfather", "friend",
    "colleague", "boss", "manager", "cat", "dog",
})  # fmt: skip
_NUMBER_WORDS: Final = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "without", "nobody", "none", "nothing", "nicht", "kein", "keine", "nie", "pas",
    "jamais",
})  # fmt: skip


@lru_cache(maxsize=65_536)
def normalise(value: str) -> str:
    """Fold ``value`` for comparing and hashing: NFKC, case, white space."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", value).casefold())
    folded = unicodedata.normalize("NFKC", folded.casefold())
    return _SPACE.sub(" ", folded).strip()


@lru_cache(maxsize=65_536)
def numbers(norm: str) -> tuple[str, ...]:
    """Return the numbers of ``norm``, small ones also when they are written as words."""
    spelled = [_NUMBER_WORDS[word] for word in _WORD.findall(norm) if word in _NUMBER_WORDS]
    return tuple(sorted(_NUMBER.findall(norm) + spelled))


@lru_cache(maxsize=65_536)
def skeleton(norm: str) -> str | None:
    """Return ``norm`` with its numbers blanked, or None when it has no number or nothing else."""
    blanked = _NUMBER.sub("#", norm)
    return blanked if "#" in blanked and _WORD.search(blanked) else None


@lru_cache(maxsize=65_536)
def parts(norm: str) -> frozenset[str]:
    """Return the comma parts of a compound value, or nothing for an atomic one."""
    found = frozenset(part for part in _PART.split(norm) if part)
    return found if len(found) > 1 else frozenset()


def negations(norm: str) -> frozenset[str]:
    """Return the words of ``norm`` that negate."""
    return _NEGATIONS.intersection(_WORD.findall(norm))


def must_differ(left: str, right: str) -> str | None:
    """Name the guard that forbids taking two normal forms for the same thing, or None."""
    words_left, words_right = set(_WORD.findall(left)), set(_WORD.findall(right))
    if numbers(left) != numbers(right):
        return "numbers"
    if negations(left) != negations(right):
        return "negation"
    if words_left & _RELATION_WORDS != words_right & _RELATION_WORDS:
        return "relation"
    return None
