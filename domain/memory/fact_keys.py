"""The key under which a fact is shown: subject, qualifier, key and sign in one, at most 64 characters.

A shown key stands for one slot and mode: it is given only where reading it back gives that slot and mode, and
a digest makes the others distinct.
"""

import hashlib
import re
from functools import lru_cache
from typing import Final

from domain.memory.keys import KEY_LENGTH
from domain.memory.slots import SELF, Slot, about_of, slot_text
from domain.memory.stances import Mode
from domain.memory.vocabulary import SlotType, builtin_vocabulary

_PREFIXES: Final = {Mode.HOLDS: "", Mode.DENIES: "not_", Mode.PLANS: "plans_"}
_VALID: Final = re.compile(r"^[a-z][a-z0-9_]{2,63}$")
_DIGEST: Final = re.compile(r"_x[0-9a-f]{12}$")
_DIGITS: Final = 12
_HEAD: Final = KEY_LENGTH - _DIGITS - len("_x")
_NOT_WORD: Final = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4096)
def fact_key_of(slot: Slot, mode: Mode = Mode.HOLDS) -> str:
    """Return the key that a fact of ``slot`` is shown under; no other slot and mode has the same."""
    plain = _plain(slot, mode)
    if _VALID.match(plain) and not _DIGEST.search(plain) and read_fact_key(plain) == (slot, mode):
        return plain
    digest = hashlib.sha256(f"{slot_text(slot)}\x1f{mode}".encode()).hexdigest()[:_DIGITS]
    words = _NOT_WORD.sub("_", plain).strip("_")
    head = words if words[:1].isalpha() else f"key_{words}"
    return f"{head[:_HEAD].rstrip('_')}_x{digest}"


@lru_cache(maxsize=4096)
def read_fact_key(key: str) -> tuple[Slot, Mode]:
    """Return what a key without a digest stands for."""
    vocabulary = builtin_vocabulary()
    if (negated := vocabulary.negatives.get(key)) is not None:
        return Slot(negated), Mode.DENIES
    mode, rest = _signed(key)
    return _subject(rest) or _own(rest), mode


def _plain(slot: Slot, mode: Mode) -> str:
    vocabulary = builtin_vocabulary()
    kind = vocabulary.slots.get(slot.key)
    own = f"{slot.qualifier}_{slot.key}" if slot.qualifier else slot.key
    if slot.about == SELF:
        negative = kind.negative if kind is not None and mode is Mode.DENIES and not slot.qualifier else ""
        return negative or f"{_PREFIXES[mode]}{own}"
    relation = slot.about.replace("/", "_").replace(" ", "_")
    form = kind.relative_key if kind is not None and kind.relative_key and not slot.qualifier else ""
    shown = form.replace("{relation}", relation) if form else f"{relation}_{own}"
    return f"{_PREFIXES[mode]}{shown}"


def _signed(key: str) -> tuple[Mode, str]:
    for mode, prefix in _PREFIXES.items():
        if prefix and key.startswith(prefix):
            return mode, key.removeprefix(prefix)
    return Mode.HOLDS, key


def _own(key: str) -> Slot:
    head, _, tail = key.partition("_")
    kind = builtin_vocabulary().slots.get(tail)
    if key not in builtin_vocabulary().slots and kind is not None and head in kind.qualifiers:
        return Slot(tail, SELF, head)
    return Slot(key)


def _subject(key: str) -> Slot | None:
    """Read a key about a relative, the longest word for one first."""
    vocabulary = builtin_vocabulary()
    if key in vocabulary.slots:
        return None
    for form, kind in vocabulary.relative_keys.items():
        before, after = form.split("{relation}")
        if before and key.startswith(before) and key.endswith(after):
            named = _named(key.removeprefix(before).removesuffix(after))
            if named is not None:
                return Slot(kind.key, named)
    for word in _words():
        if key.startswith(f"{word}_"):
            return _of(word, key.removeprefix(f"{word}_"))
    return None


def _of(word: str, rest: str) -> Slot:
    """Split what follows the word for a relative into a name, which may be absent, and a key."""
    parts = rest.split("_")
    for start in range(len(parts)):
        tail = "_".join(parts[start:])
        kind = _shown_for_relatives().get(tail)
        found = Slot(kind.key) if kind is not None else _own(tail)
        if kind is not None or found.qualifier:
            name = " ".join(parts[:start])
            return Slot(found.key, about_of(word, name), found.qualifier)
    return Slot(rest, word)


def _named(text: str) -> str | None:
    for word in _words():
        if text == word:
            return word
        if text.startswith(f"{word}_"):
            return about_of(word, text.removeprefix(f"{word}_").replace("_", " "))
    return None


@lru_cache(maxsize=1)
def _words() -> tuple[str, ...]:
    return tuple(sorted(builtin_vocabulary().relatives.several, key=lambda word: (-len(word), word)))


@lru_cache(maxsize=1)
def _shown_for_relatives() -> dict[str, SlotType]:
    """Slot types by what follows the relative's name in a shown key."""
    kinds = builtin_vocabulary().slots.values()
    renamed = {
        k.relative_key.removeprefix("{relation}_"): k
        for k in kinds
        if k.relative_key.startswith("{relation}_")
    }
    return renamed | {k.key: k for k in kinds if not k.relative_key and k.key not in renamed}
