"""JSON as language models write it: single quotes, trailing commas, raw control characters, remarks.

What is read is what stands there; nothing is completed.
"""

import json
import re
from typing import Final

_BLANK: Final = re.compile(r"(?:\s|//[^\n]*(?=\n))*")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORD: Final = re.compile(r"[-+]?[A-Za-z_][\w-]*")
_CLOSERS: Final = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_ENDS_A_STRING: Final = re.compile(r"\s*(?:[,:}\]]|$)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LITERALS: Final[dict[str, bool | float | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
}
_DECODER: Final = json.JSONDecoder(strict=False)
_HIGH_SURROGATE: Final = re.compile("[\ud800-\udbff]")
_MAX_DEPTH: Final = 24
_MAX_NUMBER_CHARS: Final = 300


class BrokenJsonError(ValueError):
    """The text breaks the form of JSON beyond what is understood."""


class CutJsonError(BrokenJsonError):
    """The text ends before its brackets do."""


def read_json(text: str, start: int = 0) -> tuple[object, int]:
    """Read the value that begins at ``start`` of ``text``; return it and the place behind it.

    Raises:
        CutJsonError: the text ends inside of the value.
        BrokenJsonError: there is no value there that can be read.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
        return reader.value(0), reader.at


class _Reader:
    """Walks over a text once; ``at`` is where it stands."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.at = start

    def value(self, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise BrokenJsonError("nested too deeply")
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in _CLOSERS:
            return self._string()
        return self._scalar()

    def _peek(self) -> str:
        """Step over blanks and return the next character."""
        blank = _BLANK.match(self._text, self.at)
        self.at = blank.end() if blank is not None else self.at
        if self.at >= len(self._text):
            raise CutJsonError("the text ends before the value does")
        return self._text[self.at]

    def _object(self, depth: int) -> dict[str, object]:
        self.at += 1
        found: dict[str, object] = {}
        while (char := self._peek()) != "}":
            if char == ",":
                self.at += 1
                continue
            key = self._string() if char in _CLOSERS else self._bare_word()
            if self._peek() != ":":
                raise BrokenJsonError("a key without a value")
            self.at += 1
            found[key] = self.value(depth + 1)
        self.at += 1
        return found

    def _array(self, depth: int) -> list[object]:
        self.at += 1
        found: list[object] = []
        while (char := self._peek()) != "]":
            if char == ",":
                self.at += 1
                continue
            found.append(self.value(depth + 1))
        self.at += 1
        return found

    def _string(self) -> str:
        closer = _CLOSERS[self._text[self.at]]
        self.at += 1
        parts: list[str] = []
        while self.at < len(self._text):
            char = self._text[self.at]
            self.at += 1
            if char == "\\":
                parts.append(self._escape())
            elif char == closer and _ENDS_A_STRING.match(self._text, self.at):
                return "".join(parts)
            else:
                parts.append(char)
        raise CutJsonError("the text ends inside of a string")

    def _escape(self) -> str:
        mark = self._text[self.at : self.at + 1]
        self.at += 1
        if mark != "u":
            return _ESCAPES.get(mark, mark)
        char = chr(self._hex())
        if _HIGH_SURROGATE.match(char) and self._text.startswith("\\u", self.at):
            self.at += 2
            char += chr(self._hex())
        return char.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _hex(self) -> int:
        digits = self._text[self.at : self.at + 4]
        self.at += 4
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise BrokenJsonError("a broken escape")
        return int(digits, 16)

    def _bare_word(self) -> str:
        word = _WORD.match(self._text, self.at)
        if word is None:
            raise BrokenJsonError("neither a key nor an end")
        self.at = word.end()
        return word.group()

    def _scalar(self) -> bool | float | None:
        number = _NUMBER.match(self._text, self.at)
        if number is not None and len(number.group()) <= _MAX_NUMBER_CHARS:
            self.at = number.end()
            self._skip_remark()
            digits = number.group()
            return int(digits) if digits.lstrip("+-").isdigit() else float(digits)
        word = self._bare_word().casefold()
        if word not in _LITERALS:
            raise BrokenJsonError("a word that is no value")
        self._skip_remark()
        return _LITERALS[word]

    def _skip_remark(self) -> None:
        """Step over a remark in brackets behind a number or literal: ``null (perhaps …)``."""
        if self._text.startswith(("(", " ("), self.at):
            end = self._text.find(")", self.at)
            if end < 0:
                raise CutJsonError("the text ends inside of a remark")
            self.at = end + 1
