"""Values: where a value ends, and how a list is cut. What kind of words it is made of: ``kinds.py``."""

import re
from typing import Final

from domain.rules.kinds import KINDS, Reading
from domain.rules.rulebook import Rulebook
from domain.secrets import MARK

_HARD_END: Final = re.compile(
    rf"[;!?()\[\]{{}}<>{MARK}\n\"]|:(?!\d)|\s[-\u2013\u2014]+\s|"
    r"(?<!\bDr)(?<!\b\d)(?<!\b\d\d)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMrs)(?<!\bProf)\.(?=\s|$)|\.\.+"
)
_ADDRESS_END: Final = re.compile(
    rf"[;!?\n{MARK}]|(?<!str)(?<!\b[A-Z])\.(?:\s|$)|,? (?:and|but|und|et|y) (?:i|my|ich|je|mi)\b",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r"\s*[,\u3001]\s*")
_GERUND_PLACE: Final = re.compile(r"\w+ing \w* ?(?:near|in|at|on|about|of|from|with)\b")
_GERUND: Final = re.compile(r"\w+ing\b")
_ADJECTIVE: Final = re.compile(r"(?:the|an?) \w+")
_NOUN_PHRASE: Final = re.compile(r"(?!the |an? |my )\w+ \w+")
_WHOLE_HEAD: Final = frozenset({"place", "org", "date", "measure", "text"})
_MAX_VALUE: Final = 160
_MAX_ITEMS: Final = 12
_MAX_TRIMS: Final = 4
_PAIR: Final = 2


class ValueReader:
    """Reads typed values of one language out of the words that follow a pattern."""

    def __init__(self, book: Rulebook, *, cased: bool) -> None:
        self._book = book
        self._reading = Reading(book=book, cased=cased)

    def read(self, rest: str, kind: str, *, many: bool) -> list[str]:
        """Return the values of ``kind`` at the head of ``rest``, none when the words do not fit."""
        if kind == "address":
            return self._one(_ADDRESS_END.split(rest, maxsplit=1)[0], kind)
        if kind in ("long", "ages"):
            return self._one(_hard_head(rest), kind)
        text = self._head(self._examples(rest) if many else rest)
        if many:
            return self._list(text, kind)
        return self._one(text if kind in _WHOLE_HEAD else _ITEM.split(text, maxsplit=1)[0], kind)

    def _examples(self, rest: str) -> str:
        """Take the examples for a noun that says little without them: "bands like A and B"."""
        examples = self._book.value.get("examples")
        match = examples.search(rest) if examples else None
        return rest[match.end() :] if match and len(rest[: match.start()].split()) == 1 else rest

    def _list(self, text: str, kind: str) -> list[str]:
        items = self._items(text)
        if self._shares_head(items) or _hangs_together(items):
            return self._one(text, kind)
        out: list[str] = []
        for item in items:
            value = self._typed(item, kind)
            if value is None and not kind.startswith("pet"):
                break
            if value is not None:
                out.append(value)
        return out[:_MAX_ITEMS]

    def _items(self, text: str) -> list[str]:
        parts = [part for chunk in _ITEM.split(text) for part in self._book.value["and"].split(chunk)]
        return [part.strip() for part in parts if part and part.strip()]

    def _shares_head(self, items: list[str]) -> bool:
        """Tell whether one noun closes the list and belongs to all of it: "action and comedy movies"."""
        if len(items) != _PAIR or len(items[1].split()) != _PAIR or len(items[0].split()) != 1:
            return False
        heads = self._book.lexicon.get("shared_heads", frozenset())
        return items[1].split()[-1].casefold() in heads and items[0].casefold() not in heads

    def _one(self, text: str, kind: str) -> list[str]:
        value = self._typed(text, kind)
        return [value] if value else []

    def _typed(self, text: str, kind: str) -> str | None:
        text = self._trimmed(text)
        if not text or len(text) > _MAX_VALUE or self._book.value["never"].fullmatch(text):
            return None
        if kind in ("address", "long"):
            text = self._trimmed(self._reading.long_head(text) if kind == "long" else text)
        return KINDS.get(kind, KINDS["phrase"])(self._reading, text) if text else None

    def _head(self, rest: str) -> str:
        text = _hard_head(rest)
        stop = self._book.value["stop"].search(text)
        return (text[: stop.start()] if stop else text).strip(" ,.'-")

    def _trimmed(self, text: str) -> str:
        for _ in range(_MAX_TRIMS):
            before = text
            text = self._book.value["trim_tail"].sub("", text).strip(" ,.'-\u2013")
            text = self._book.value["trim_head"].sub("", text).strip(" ,.'-\u2013")
            if text == before:
                break
        return text


def _hard_head(rest: str) -> str:
    end = _HARD_END.search(rest)
    return (rest[: end.start()] if end else rest).strip(" ,.'")


def _hangs_together(items: list[str]) -> bool:
    """Tell whether the later items belong to the first: "walking near lakes and hills"."""
    if len(items) < _PAIR:
        return False
    if _GERUND_PLACE.match(items[0]) and not _GERUND.match(items[1]):
        return True
    return len(items) == _PAIR and bool(_ADJECTIVE.fullmatch(items[0]) and _NOUN_PHRASE.match(items[1]))
