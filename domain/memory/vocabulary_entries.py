"""Reading one entry of the vocabulary's TOML, with errors that name the entry and its field."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Final

from domain.errors import InvalidInputError
from domain.memory.keys import canonical_key

_PLACES: Final = frozenset({"value", "subject", "qualifier", "topic"})
_FORM: Final = re.compile(r"^(?:[a-z][a-z0-9]*_)*\{(?:relation|topic)\}(?:_[a-z0-9]+)*$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of the file; ``where`` names it in messages."""

    where: str
    fields: Mapping[str, object]
    name: str = ""

    def wrong(self, field: str, message: str) -> InvalidInputError:
        """Return the error that names this entry and ``field``."""
        return InvalidInputError(f"{self.where}: {field}: {message}", field=field)

    def only(self, *known: str) -> None:
        """Refuse fields that nobody reads."""
        unknown = sorted(set(self.fields) - set(known))
        if unknown:
            raise self.wrong(unknown[0], "no such field")

    def text(self, field: str, default: str | None = None) -> str:
        """Return a text, which is required unless there is a ``default``."""
        found = self.fields.get(field, default)
        if not isinstance(found, str):
            raise self.wrong(field, "a text is needed")
        return found

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts, which may be absent."""
        found = self.fields.get(field, ())
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise self.wrong(field, "a list of texts is needed")
        if not all(isinstance(one, str) for one in found):
            raise self.wrong(field, "a list of texts is needed")
        return tuple(found)

    def number(self, field: str, default: float) -> float:
        """Return a number that is not negative."""
        found = self.fields.get(field, default)
        if not isinstance(found, int | float) or isinstance(found, bool) or found < 0:
            raise self.wrong(field, "a number of at least 0 is needed")
        return found

    def flag(self, field: str) -> bool:
        """Return true or false; absent is false."""
        found = self.fields.get(field, False)
        if not isinstance(found, bool):
            raise self.wrong(field, "true or false is needed")
        return found

    def one_of(self, field: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of ``choices``."""
        found = self.text(field, default)
        if found not in choices:
            raise self.wrong(field, f"{found!r} is none of {', '.join(choices)}")
        return found

    def key(self, field: str, default: str | None = None) -> str:
        """Return a key in its canonical spelling, or with a place for a topic."""
        found = self.text(field, default)
        if found == default or _FORM.match(found):
            return found
        return self._canonical(field, found)

    def keys(self, field: str) -> tuple[str, ...]:
        """Return keys in their canonical spelling."""
        return tuple(self._canonical(field, one) for one in self.texts(field))

    def form(self, field: str) -> str:
        """Return the form of a key for a relative, or nothing."""
        found = self.text(field, "")
        if found and not (_FORM.match(found) and "{relation}" in found):
            raise self.wrong(field, f"{found!r} is no key with a {{relation}} in it")
        return found

    def sentence(self, field: str, *, required: bool = False) -> str:
        """Return a sentence with places that can be filled."""
        found = self.text(field, None if required else "")
        try:
            places = {place for _, place, _, _ in Formatter().parse(found) if place is not None}
        except ValueError as exc:
            raise self.wrong(field, str(exc)) from exc
        if places - _PLACES:
            raise self.wrong(field, f"no such place: {{{min(places - _PLACES)}}}")
        return found

    def table(self, field: str) -> "Entry":
        """Return the table inside this entry, which may be absent."""
        found = self.fields.get(field, {})
        if not isinstance(found, Mapping):
            raise self.wrong(field, "a table is needed")
        return Entry(f"{self.where}.{field}", found)

    def _canonical(self, field: str, key: str) -> str:
        if canonical_key(key) != key:
            raise self.wrong(field, f"{key!r} is spelled {canonical_key(key)!r}")
        return key


def tables(raw: Mapping[str, object], section: str) -> Iterator[Entry]:
    """Yield the named tables of ``section``."""
    found = Entry("the vocabulary", raw).table(section)
    for name in found.fields:
        yield Entry(f"[{section}.{name}]", found.table(name).fields, name)


def entries(raw: Mapping[str, object], section: str) -> Iterator[Entry]:
    """Yield the tables of the list ``section``."""
    found = raw.get(section, ())
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise InvalidInputError(f"[[{section}]] is a list of tables", field=section)
    for place, fields in enumerate(found, 1):
        if not isinstance(fields, Mapping):
            raise InvalidInputError(f"[[{section}]] {place}: a table is needed", field=section)
        yield Entry(f"[[{section}]] {place} ({fields.get('key', 'without a key')})", fields)


def types_of(raw: Mapping[str, object], additions: Mapping[str, object]) -> Iterator[Entry]:
    """Yield the types of ``raw`` and ``additions``; one that is added takes the place of its namesake."""
    Entry("the file", additions).only("types", "slots")
    added = {entry.name: entry for entry in tables(additions, "types")}
    yield from (entry for entry in tables(raw, "types") if entry.name not in added)
    yield from added.values()


def slots_of(raw: Mapping[str, object], additions: Mapping[str, object]) -> Iterator[Entry]:
    """Yield the slots of ``raw`` and ``additions``; one that is added takes the place of its namesake."""
    added = list(entries(additions, "slots"))
    replaced = [entry.fields.get("key") for entry in added]
    yield from (entry for entry in entries(raw, "slots") if entry.fields.get("key") not in replaced)
    yield from added
