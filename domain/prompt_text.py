"""Facts as lines of a prompt: a value is data, and opens no line, heading, tag or instruction."""

import re
import unicodedata
from typing import Final

HEADER: Final = "## User Memory\n"
FOOTER: Final = "\nUse these facts to personalize your responses where relevant.\n"

_SPACE: Final = re.compile(r"\s+")
# What could close the line's frame or open markup, and the harmless signs that are shown in its place.
_MARKUP: Final = str.maketrans(
    {"<": "\u2039", ">": "\u203a", "`": "'", "[": "(", "]": ")", "{": "(", "}": ")"}
)
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def fact_line(category: str, fact_key: str, value: str) -> str:
    """Return one line of the memory block for a fact."""
    return f"- [{quoted(category)}] {quoted(fact_key)}: {quoted(value)}\n"


def quoted(value: str) -> str:
    """Return ``value`` on one line and without marks that a prompt or a page would read as structure."""
    visible = "".join(" " if unicodedata.category(c) in _HIDDEN and c != "\u200d" else c for c in value)
    return _SPACE.sub(" ", visible.translate(_MARKUP)).strip()
