"""Slots: what a statement is about. A slot is found from one statement alone, never from other statements.

``slot_of`` maps the key of a model or a rule to a canonical key by the vocabulary; a key that nobody knows
keeps its own name and is called *free*. How many values may hold at once is a property of the key:

ONE    one value at a time, a new one ends the old one (city, job title, age, version)
MANY   values side by side, each with its own sign (likes, pets, children, citizenships)
EVENT  dated happenings; the date is part of the identity and nothing ends them
FREE   an unknown key: values stay side by side unless only their numbers differ
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, LiteralString

from domain.memory.keys import canonical_key
from domain.memory.stances import Stance
from domain.memory.values import normalise
from domain.memory.vocabulary import Arity, SlotType, builtin_vocabulary

SELF: Final = "self"

_SINGLE_BY_NAME: Final = re.compile(
    r"^(?:favou?rite|current|primary|preferred|main|next|last|only)_|_(?:name|version|date|status|count|age|level)$"
)
_ESCAPED: Final = {"%": "%25", "|": "%7C"}
_TEXT_PARTS: Final = 3
_OF_ANIMALS: Final = frozenset({"name", "age", "birthday", "died"})


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A canonical key of one subject: ``self``, a relative (``sister/ana``) or a thing (``invoice job``)."""

    key: str
    about: str = SELF
    qualifier: str = ""

    def __str__(self) -> str:
        return ".".join(
            part for part in (self.about if self.about != SELF else "", self.key, self.qualifier) if part
        )


def about_of(subject: str, name: str = "") -> str:
    """Name the subject of a slot: the relation word, and the person's name where one was said."""
    relatives = builtin_vocabulary().relatives
    said = normalise(subject)
    word = said.replace(" ", "_")
    relation = relatives.same.get(word, word if word in relatives.several else said)
    return f"{relation}/{normalise(name)}" if name else relation


def slot_text(slot: Slot) -> str:
    """Write ``slot`` as one text, from which ``slot_from_text`` reads it back."""
    return "|".join(_escaped(part) for part in (slot.key, slot.about, slot.qualifier))


def slot_from_text(text: str) -> Slot:
    """Read what ``slot_text`` wrote.

    Raises:
        ValueError: ``text`` is no slot.
    """
    parts = text.split("|")
    if len(parts) != _TEXT_PARTS:
        raise ValueError("a slot is written as key, subject and qualifier")
    return Slot(*(part.replace("%7C", "|").replace("%25", "%") for part in parts))


#: Every slot at once: what is forgotten here is forgotten in all of them. Nothing else is said of it.
EVERYWHERE_TEXT: Final[LiteralString] = "*|self|"
EVERYWHERE: Final = slot_from_text(EVERYWHERE_TEXT)


@lru_cache(maxsize=4096)
def slot_of(key: str, about: str = SELF, qualifier: str = "") -> Slot:
    """Return the slot that ``key`` means; an unknown key is a free slot of its own."""
    canonical = canonical_key(key)
    kind = builtin_vocabulary().by_name.get(canonical) or _qualified(canonical)
    if kind is None:
        return Slot(canonical, about, normalise(qualifier))
    found = qualifier or kind.qualified.get(canonical) or _qualifier_in(canonical, kind)
    return Slot(kind.key, about, normalise(found))


@lru_cache(maxsize=4096)
def read_key(key: str, about: str = SELF, qualifier: str = "") -> tuple[Slot, Stance | None]:
    """Return the slot that ``key`` means, and the stance that the key implies (``previous_city``: held).

    A key that names somebody is about them: ``sister_residence`` is the sister's ``home_city``.
    """
    vocabulary = builtin_vocabulary()
    canonical = canonical_key(key)
    slot = slot_of(key, about, qualifier)
    if about == SELF and not is_known(slot) and (found := _of_a_relative(canonical)) is not None:
        return Slot(found[0].key, found[1], normalise(qualifier)), None
    return slot, vocabulary.implied.get(canonical)


def is_known(slot: Slot) -> bool:
    """Say whether the vocabulary has the key of ``slot``."""
    return slot.key in builtin_vocabulary().slots


def asks(slot: Slot) -> bool:
    """Say whether a change in ``slot`` is always put to the user."""
    kind = builtin_vocabulary().slots.get(slot.key)
    return kind is not None and kind.ask


@lru_cache(maxsize=4096)
def arity_of(slot: Slot) -> Arity:
    """Return how many values of ``slot`` may hold at once."""
    vocabulary = builtin_vocabulary()
    kind = vocabulary.slots.get(slot.key)
    if kind is None:
        return Arity.ONE if _SINGLE_BY_NAME.search(slot.key) else Arity.FREE
    unnamed_of_several = vocabulary.relatives.several.get(slot.about, False)
    return Arity.MANY if kind.arity is Arity.ONE and unnamed_of_several else kind.arity


def _escaped(part: str) -> str:
    for char, escape in _ESCAPED.items():
        part = part.replace(char, escape)
    return part


def _qualifier_in(canonical: str, kind: SlotType) -> str:
    words = canonical.split("_")
    return next((one for one in kind.qualifiers if one in words), "")


def _qualified(canonical: str) -> SlotType | None:
    head, _, tail = canonical.partition("_")
    kind = builtin_vocabulary().by_name.get(tail)
    return kind if kind is not None and head in kind.qualifiers else None


def _is_of(kind: SlotType, word: str) -> bool:
    """Say whether a key that starts with ``word`` can be about them: a ``bee_allergy`` is the user's own."""
    return bool(kind.relative_key) and (
        word not in builtin_vocabulary().relatives.animals or kind.key in _OF_ANIMALS
    )


def _of_a_relative(canonical: str) -> tuple[SlotType, str] | None:
    """Read ``sister_residence`` and ``has_sister``; words of several parts (``best_friend``) come first."""
    vocabulary = builtin_vocabulary()
    for word in sorted(vocabulary.relatives.words, key=lambda one: (-len(one), one)):
        if canonical.startswith(f"{word}_"):
            rest = canonical.removeprefix(f"{word}_")
            kind = vocabulary.relative_keys.get(f"{{relation}}_{rest}") or vocabulary.by_name.get(rest)
            kind = kind if kind is not None and _is_of(kind, word) else None
        else:
            kind = vocabulary.relative_keys.get(canonical.replace(word, "{relation}", 1))
        if kind is not None:
            return kind, about_of(word)
    return None
