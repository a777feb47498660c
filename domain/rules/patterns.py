"""The pattern language of a rule file, turned into regular expressions whose repeats are all bounded.

A pattern is words. A space is white space; ``{macro}?`` and ``(?:a|b)?`` are words that may be absent; ``$``
is the end of the clause; ``(?=…)`` and ``(?!…)`` look ahead; ``[A-Z]`` is a capital, though patterns ignore
case.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

_CAPITAL: Final = r"(?-i:[A-Z\u00c0-\u00de])"
_NAME: Final = rf"(?P<name>[^\W\d_][\w'-]{{1,24}}(?: {_CAPITAL}[\w'-]{{1,24}})?)"
# Too frequent to tell a rule apart.
_TOO_COMMON: Final = frozenset(
    {"a", "an", "the", "in", "to", "at", "is", "are", "of", "i", "on", "with", "for"}
)
# One bracket of plain options, or one plain word, after brackets that may be absent.
_OPTIONS: Final = re.compile(
    r"(?:\(\?:[^()]*\)\?)*"
    r"(?:\((?:\?:|\?P<\w+>)(?P<options>[\w |']+)\)|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?))"
)
_PLAIN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_REPEAT: Final = re.compile(r"(?:\?|\{0,\d+\})$")
_MACRO: Final = re.compile(r"\{([a-zA-Z_]+)\}")
_INNER: Final = {
    "value": r"(?P<value>[^,;:]{1,80}?)",
    "topic": r"(?P<topic>[^\W\d_][\w'-]{1,20}(?: [\w'-]{2,20}){0,2}?)",
    "number": r"(?P<number>\d{1,4}(?:[.,]\d{1,3})?)(?![.,]?\d)",
    "name": _NAME,
}


class PatternCompiler:
    """Compiles the patterns of one language with its macros."""

    def __init__(self, words: Mapping[str, str], *, spaced: bool) -> None:
        self._words = words
        self.spaced = spaced

    def compile(self, pattern: str) -> re.Pattern[str]:
        """Compile one pattern of a rule."""
        return re.compile(self.translate(pattern), re.IGNORECASE)

    def compile_plain(self, expression: str) -> re.Pattern[str]:
        """Compile a regular expression in which only macros are special."""
        return re.compile(self.expand(expression), re.IGNORECASE)

    def translate(self, pattern: str) -> str:
        """Return the regular expression that ``pattern`` stands for."""
        if not self.spaced:
            return self.expand(pattern)
        found = tokens(pattern)
        return "".join(
            self._token(token, is_loose=_may_end_before(found[index + 1 :]))
            for index, token in enumerate(found)
        )

    def expand(self, text: str) -> str:
        """Put the macros' words into ``text``."""

        def macro(match: re.Match[str]) -> str:
            name = match[1]
            return _INNER[name] if name in _INNER else f"(?:{self.expand(self._words[name])})"

        return _MACRO.sub(macro, text).replace("[A-Z]", _CAPITAL)

    def _token(self, token: str, *, is_loose: bool) -> str:
        if token == "$":  # noqa: S105 - a mark of the pattern language
            return r"[\s.!,]*$"
        if token.startswith(("(?=", "(?!")):
            return self.expand(token)
        is_optional = _is_optional(token)
        body = f"(?:{self.expand(token[:-1] if is_optional else token)})"
        gap = "" if _brings_own_gap(token) else r"(?![\w'])\s*" if is_loose else r"\s+"
        return f"(?:{body}{gap})?" if is_optional else f"{body}{gap}"


def tokens(pattern: str) -> list[str]:
    """Split ``pattern`` at the spaces that are not inside brackets."""
    out, depth, current = [], 0, ""
    for char in pattern:
        depth += (char in "({[") - (char in ")}]")
        if char == " " and depth == 0:
            out.append(current)
            current = ""
        else:
            current += char
    return [token for token in [*out, current] if token]


def first_words(patterns: Sequence[str], heads: Mapping[str, str]) -> frozenset[str] | None:
    """Return the first words of the clauses that ``patterns`` can match; None when ``heads`` do not tell."""
    found: set[str] = set()
    for pattern in patterns:
        head = heads.get(tokens(pattern)[0])
        if head is None:
            return None
        found.update(head.split("|"))
    return frozenset(found)


def needed_words(patterns: Sequence[str]) -> frozenset[str] | None:
    """Return words of which a clause must hold one for ``patterns`` to match; None when nothing tells."""
    found: set[str] = set()
    for pattern in patterns:
        words = _needed(pattern)
        if words is None:
            return None
        found |= words
    return frozenset(found)


def _needed(pattern: str) -> frozenset[str] | None:
    # A word that may be absent cannot be needed.
    options = (_literal_words(token) for token in tokens(pattern) if not token.endswith("?"))
    return next((words for words in options if words and not words & _TOO_COMMON), None)


def _literal_words(token: str) -> frozenset[str] | None:
    """Return the first words of the options of ``token``, when all of them are plain text."""
    match = _OPTIONS.fullmatch(token)
    if match is None:
        return None
    words = [option.split(" ")[0] for option in (match["options"] or match["word"]).split("|")]
    return (
        frozenset(word.casefold() for word in words)
        if all(_PLAIN.fullmatch(word) for word in words)
        else None
    )


def _may_end_before(following: Sequence[str]) -> bool:
    """Tell whether the pattern may end, or punctuation may come, before ``following``."""
    needed = next((token for token in following if not _is_optional(token)), None)
    return needed is None or needed.startswith(("(?=", "$"))


def _is_optional(token: str) -> bool:
    """Tell whether the mark at the end of ``token`` is about all of it: one macro or one bracket."""
    return token.endswith("?") and token[:1] in ("(", "{") and _closes_at(token) == len(token) - 2


def _closes_at(token: str) -> int:
    depth = 0
    for index, char in enumerate(token):
        depth += (char in "({") - (char in ")}")
        if depth == 0:
            return index
    return -1


def _brings_own_gap(token: str) -> bool:
    """Tell whether ``token`` ends in a bracket that looks ahead, or that may be absent with its own space."""
    body = _REPEAT.sub("", token)
    if not body.endswith(")"):
        return False
    unit = body[_opens_at(body) :]
    return unit.startswith(("(?=", "(?!")) or (token != body and unit.endswith(" )"))


def _opens_at(body: str) -> int:
    depth = 0
    for index in range(len(body) - 1, -1, -1):
        depth += (body[index] == ")") - (body[index] == "(")
        if depth == 0:
            return index
    return len(body)
