"""What a request to forget is about: everything, some slots of the user's, or those of somebody they have."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from domain.memory.slots import SELF, about_of
from domain.memory.values import EVERYTHING, normalise
from domain.rules.rulebook import Rulebook

_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LONGEST_NAME: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A slot that is to be forgotten, of the user or of ``about``."""

    slot: str
    qualifier: str = ""
    about: str = SELF


def forgotten_slots(what: str, book: Rulebook) -> Sequence[Forgotten]:
    """Return the slots that ``what``, the object of a request to forget, names by their words.

    It is everything only where nothing else is said: "everything about my car" is not. Where it names a
    person or an animal of the user's, only what is known of those is meant, never the user's own.
    """
    if any(one.slot == EVERYTHING and one.words.fullmatch(what) for one in book.forget):
        return [Forgotten(slot=EVERYTHING)]
    owner = _owner(what, book)
    about, rest = owner if owner is not None else (SELF, what)
    return [
        Forgotten(slot=one.slot, qualifier=one.qualifier, about=about)
        for one in book.forget
        if one.slot != EVERYTHING and one.words.search(rest)
    ]


def _owner(what: str, book: Rulebook) -> tuple[str, str] | None:
    """Return whose things ``what`` is about, in "my mum's name", and the words without that person."""
    known = {**book.animals, **book.relations}
    for start, end, words in _runs(what):
        family = known.get(normalise(words.removesuffix("'s")))
        has_more = bool(
            _WORD.search(what[end:].removeprefix("'s")) or _WORD.search(_without_possessive(what[:start]))
        )
        if family is not None and has_more:
            return about_of(family), f"{what[:start]} {what[end:].removeprefix(chr(39) + 's')}"
    return None


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the runs of up to three words of ``text``, the longest first."""
    found = list(_WORD.finditer(text))
    for length in range(_LONGEST_NAME, 0, -1):
        for first in range(len(found) - length + 1):
            start, end = found[first].start(), found[first + length - 1].end()
            yield start, end, text[start:end]


def _without_possessive(text: str) -> str:
    """Drop a word that only says whose somebody is."""
    return re.sub(r"(?i)\b(?:my|our|the|mein\w*|unser\w*|mon|ma|mes|mi|mis)\b", "", text)
