"""Text as it may be stored, and text as it is read by rules."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_ANSI: Final = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_LINE_END: Final = re.compile(r"\r\n?")
_OTHER_LINE_END: Final = re.compile(r"[\u2028\u2029]")
_CONTROL_SPACE: Final = re.compile(r"[\x0b\x0c\x1c-\x1f\x85]")
_OTHER_SPACE: Final = re.compile(r"[\t\v\f\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_SPACES: Final = re.compile(r" {2,}")
_QUOTES: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\uff07": "'", "\u00b4": "'"})
# Control characters but tab and line end, bidi controls, the byte order mark, specials, lone surrogates.
_NOT_STORED: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile(r"[A-Za-z]")
_GREEK_OR_CYRILLIC: Final = re.compile(r"[\u0370-\u04ff]")
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420"
    "\u0421\u0422\u0425\u0406\u0408\u03bf\u03b1\u0391\u0392\u0395\u039f\u03a1\u03a4\u03a7",
    "aeopcyxijABEKMHOPCTXIJoaABEOPTX",
)
_NOT_READ: Final = frozenset({"Cc", "Cf", "Cs", "Co"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A text that can be stored, and whether something had to go for it."""

    text: str
    changed: bool


def clean(text: str) -> Cleaned:
    """Drop NUL, control characters, terminal codes, bidi controls and lone surrogates from ``text``."""
    paired = (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _has_surrogate(text) else text
    )
    spaced = _CONTROL_SPACE.sub(" ", _LINE_END.sub("\n", paired))
    kept = _NOT_STORED.sub("", _ANSI.sub("", spaced))
    return Cleaned(text=kept, changed=kept != _LINE_END.sub("\n", text))


def readable(text: str) -> str:
    """Fold ``text`` for reading: widths, quotes, spaces, and letters that only look like Latin ones."""
    text = _OTHER_LINE_END.sub("\n", clean(text).text)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _OTHER_SPACE.sub(" ", text)
    if not text.isascii() or not text.isprintable():
        text = "".join(c for c in text if c == "\n" or unicodedata.category(c) not in _NOT_READ)
    text = _SPACES.sub(" ", text).strip()
    return _WORD.sub(_with_latin_letters, text) if _GREEK_OR_CYRILLIC.search(text) else text


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else False


def _with_latin_letters(match: re.Match[str]) -> str:
    word = match.group()
    return word.translate(_LOOK_ALIKES) if _LATIN.search(word) and _GREEK_OR_CYRILLIC.search(word) else word
