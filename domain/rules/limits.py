"""What a pattern may be made of, so that every text is read in time that grows with its length alone.

A clause is at most some hundred characters long and a pattern begins at its start, so that what one pattern
costs is bounded once its repeats are: no repeat without an end around a bracket, and no reference back.
"""

import re
from typing import Final

LONGEST_PATTERN: Final = 4000
MOST_REPEATS: Final = 12

_ESCAPE: Final = re.compile(r"\\(?:(?P<back>[1-9])|.)", re.DOTALL)
_QUANTIFIER: Final = re.compile(r"[*+]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_NAMED_BACK: Final = "(?P="


class UnboundedPatternError(ValueError):
    """A pattern could take more time than its text is long."""


def assure_bounded(pattern: str) -> None:
    """Refuse a pattern whose cost has no bound.

    Raises:
        UnboundedPatternError: with what is wrong and where.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise UnboundedPatternError(f"longer than {LONGEST_PATTERN} characters")
    place, after_bracket = 0, False
    while place < len(pattern):
        width = _width(pattern, place)
        if after_bracket:
            _assure_ends(pattern, place)
        after_bracket = pattern[place] == ")"
        place += width


def _width(pattern: str, place: int) -> int:
    """Return the length of what stands at ``place``: an escape, a class of characters, or one character."""
    escape = _ESCAPE.match(pattern, place)
    if (escape is not None and escape["back"]) or pattern.startswith(_NAMED_BACK, place):
        raise UnboundedPatternError(f"a reference back at {place}")
    found = escape or _CLASS.match(pattern, place)
    return len(found.group()) if found is not None else 1


def _assure_ends(pattern: str, place: int) -> None:
    quantifier = _QUANTIFIER.match(pattern, place)
    if quantifier is None:
        return
    most = quantifier["most"] or ("" if quantifier["comma"] else quantifier["least"])
    if not most:
        raise UnboundedPatternError(f"a bracket that repeats without an end at {place}")
    if int(most) > MOST_REPEATS:
        raise UnboundedPatternError(f"a bracket that repeats more than {MOST_REPEATS} times at {place}")
