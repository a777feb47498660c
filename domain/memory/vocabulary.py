"""The vocabulary: memory types, the slots that facts are filed under, and the people that are spoken of.

It is read from TOML (``memory_types.toml`` beside this module says what each entry means) and is the same for
rules, prompt and fold.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Final

from domain.errors import InvalidInputError
from domain.memory.keys import canonical_key
from domain.memory.stances import Stance
from domain.memory.vocabulary_entries import Entry, slots_of, types_of


class Arity(StrEnum):
    """How many values of a slot may hold at the same time."""

    ONE = "one"
    MANY = "many"
    EVENT = "event"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryType:
    """A category of facts; a lifespan of 0 days is for good."""

    name: str
    description: str
    keywords: tuple[str, ...] = ()
    importance: float = 5.0
    lifespan_days: int = 0
    visibility: str = "personal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotType:
    """What the vocabulary knows of a key; ``memory_types.toml`` says what each field means."""

    key: str
    category: str
    arity: Arity
    value_kind: str = "phrase"
    sentence: str
    relative_sentence: str = ""
    denial_sentence: str = ""
    past_sentence: str = ""
    plan_sentence: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    implied: Mapping[str, Stance]
    qualifiers: tuple[str, ...] = ()
    qualified: Mapping[str, str]
    negative: str = ""
    ask: bool = False
    importance: float = 5.0
    lifespan_days: int = 0
    sensitive: bool = False
    relative_key: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every key that means this slot."""
        return (self.key, *self.aliases, *self.implied, *self.qualified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relatives:
    """Who is spoken of: for each word whether there may be several, and words that mean another one."""

    several: Mapping[str, bool]
    same: Mapping[str, str]
    animals: frozenset[str] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """Every word for a relative or an animal."""
        return frozenset(self.several) | frozenset(self.same)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Types and slots by name. A slot whose key has ``{topic}`` describes free keys and is no key itself."""

    types: Mapping[str, MemoryType]
    slots: Mapping[str, SlotType]
    patterns: Mapping[str, SlotType]
    relatives: Relatives

    def find(self, key: str) -> SlotType | None:
        """Return the slot type that ``key`` means by itself or by an alias, or that describes a free key."""
        canonical = canonical_key(key)
        known = self.by_name.get(canonical)
        return known or next((kind for kind, form in self._forms if form.match(canonical)), None)

    def described(self, key: str) -> tuple[SlotType, str] | None:
        """Return the slot type of a canonical key, and the topic that the key names."""
        if (kind := self.slots.get(key)) is not None:
            return kind, ""
        found = ((kind, form.match(key)) for kind, form in self._forms)
        return next(((kind, match["topic"]) for kind, match in found if match), None)

    def category_of(self, key: str, default: str = "fact") -> MemoryType:
        """Return the type under which ``key`` is filed."""
        kind = self.find(key)
        return self.types[kind.category if kind is not None else default]

    @cached_property
    def by_name(self) -> Mapping[str, SlotType]:
        """Slot types by each of their names."""
        return {name: kind for kind in self.slots.values() for name in kind.names}

    @cached_property
    def implied(self) -> Mapping[str, Stance]:
        """The stance that a name implies (``previous_city``: held)."""
        return {name: stance for kind in self.slots.values() for name, stance in kind.implied.items()}

    @cached_property
    def negatives(self) -> Mapping[str, str]:
        """Keys by the key under which their denials are shown."""
        return {kind.negative: kind.key for kind in self.slots.values() if kind.negative}

    @cached_property
    def relative_keys(self) -> Mapping[str, SlotType]:
        """Slot types by the form of their key for a relative (``{relation}_residence``)."""
        return {kind.relative_key: kind for kind in self.slots.values() if kind.relative_key}

    @cached_property
    def _forms(self) -> tuple[tuple[SlotType, re.Pattern[str]], ...]:
        return tuple(
            (kind, re.compile(f"^{re.escape(key).replace(re.escape('{topic}'), '(?P<topic>.+)')}$"))
            for key, kind in self.patterns.items()
        )


_STANCES: Final = {"held": Stance.HELD, "denied": Stance.DENIES, "planned": Stance.PLANS}


def load_vocabulary(text: str, additions: str = "") -> Vocabulary:
    """Read a vocabulary, and ``additions`` to it: types and slots that are new, or in the place of its own.

    Raises:
        InvalidInputError: with the line, or the entry and its field, that is wrong.
    """
    raw, added = _toml(text), _toml(additions)
    types = {entry.name: _type(entry) for entry in types_of(raw, added)}
    kinds = [_slot(entry, types) for entry in slots_of(raw, added)]
    _no_name_twice(kinds)
    return Vocabulary(
        types=types,
        slots={kind.key: kind for kind in kinds if "{" not in kind.key},
        patterns={kind.key: kind for kind in kinds if "{" in kind.key},
        relatives=_relatives(Entry("the vocabulary", raw).table("relations")),
    )


def _toml(text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInputError(f"the vocabulary is no TOML: {exc}", field="memory_types") from exc


@lru_cache(maxsize=1)
def builtin_vocabulary() -> Vocabulary:
    """Return the vocabulary of this process: the package's, with what was added at the start."""
    text = (files("domain.memory") / "memory_types.toml").read_text(encoding="utf-8")
    return load_vocabulary(text, _ADDED.text)


class _Added:
    """What an operator's file adds to the vocabulary of this process."""

    text: str = ""


_ADDED: Final = _Added()


def add_to_vocabulary(text: str) -> Vocabulary:
    """Put the types and slots of ``text`` into the vocabulary of this process, before anything reads it.

    Raises:
        InvalidInputError: with the line, or the entry and its field, that is wrong.
    """
    before, _ADDED.text = _ADDED.text, text
    builtin_vocabulary.cache_clear()
    try:
        return builtin_vocabulary()
    except InvalidInputError:
        _ADDED.text = before
        raise


def _type(entry: Entry) -> MemoryType:
    entry.only("description", "keywords", "importance", "lifespan_days", "visibility")
    return MemoryType(
        name=entry.name,
        description=entry.text("description"),
        keywords=entry.texts("keywords"),
        importance=entry.number("importance", 5.0),
        lifespan_days=int(entry.number("lifespan_days", 0)),
        visibility=entry.one_of("visibility", ("personal", "shared"), "personal"),
    )


_SLOT_FIELDS: Final = (
    "key", "type", "arity", "value", "sentence", "past_sentence", "denial_sentence", "plan_sentence",
    "relative_sentence", "relative_key", "example", "aliases", "held", "denied", "planned", "qualifiers",
    "qualified", "negative", "ask", "importance", "lifespan_days", "sensitive",
)  # fmt: skip


def _slot(entry: Entry, types: Mapping[str, MemoryType]) -> SlotType:
    entry.only(*_SLOT_FIELDS)
    category = types[entry.one_of("type", tuple(types))]
    return SlotType(
        key=entry.key("key"),
        category=category.name,
        arity=Arity(entry.one_of("arity", tuple(Arity))),
        value_kind=entry.text("value", "phrase"),
        sentence=entry.sentence("sentence", required=True),
        relative_sentence=entry.sentence("relative_sentence"),
        denial_sentence=entry.sentence("denial_sentence"),
        past_sentence=entry.sentence("past_sentence"),
        plan_sentence=entry.sentence("plan_sentence"),
        example=entry.text("example", ""),
        aliases=entry.keys("aliases"),
        implied={name: stance for field, stance in _STANCES.items() for name in entry.keys(field)},
        qualifiers=entry.keys("qualifiers"),
        qualified=_qualified(entry),
        negative=entry.key("negative", ""),
        ask=entry.flag("ask"),
        importance=entry.number("importance", category.importance),
        lifespan_days=int(entry.number("lifespan_days", category.lifespan_days)),
        sensitive=entry.flag("sensitive"),
        relative_key=entry.form("relative_key"),
    )


def _qualified(entry: Entry) -> Mapping[str, str]:
    given = entry.table("qualified")
    unknown = sorted(set(given.fields) - set(entry.texts("qualifiers")))
    if unknown:
        raise entry.wrong("qualified", f"{unknown[0]!r} is none of the qualifiers")
    return {name: qualifier for qualifier in given.fields for name in given.keys(qualifier)}


def _relatives(entry: Entry) -> Relatives:
    entry.only("one", "several", "animals", "same")
    animals = entry.texts("animals")
    several = dict.fromkeys(entry.texts("one"), False) | dict.fromkeys(
        (*entry.texts("several"), *animals), True
    )
    given = entry.table("same")
    same = {word: given.text(word) for word in given.fields}
    unknown = sorted(set(same.values()) - set(several))
    if unknown:
        raise entry.wrong("same", f"{unknown[0]!r} is no relation")
    return Relatives(several=several, same=same, animals=frozenset(animals))


def _no_name_twice(kinds: Iterable[SlotType]) -> None:
    owner: dict[str, str] = {}
    for kind in kinds:
        for name in (*kind.names, *filter(None, (kind.relative_key,))):
            if owner.setdefault(name, kind.key) != kind.key or kind.names.count(name) > 1:
                message = f"the name {name!r} belongs to {owner[name]!r} and to {kind.key!r}"
                raise InvalidInputError(message, field=f"slots.{kind.key}.aliases")
