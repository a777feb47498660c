"""Lines that nobody says: logs, diffs, tables, data, quoted mail, key-value runs and pasted chats."""

import re
from collections.abc import Sequence
from typing import Final

_LOG_LINE: Final = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|"
    r"\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL)\b|Traceback |File \"|at [\w.$<>]+\(|"
    r"\w+(?:Error|Exception)\b: |\$ |>>> |# |@@ |(?:[\w.-]+=\S+\s+){1,}[\w.-]+=\S+|"
    r"[A-Z][A-Z0-9_]{2,40}\s?=\s?\S)"
)
_QUOTED_LINE: Final = re.compile(r"^\s*(?:>|\|)")
_DATA_LINE: Final = re.compile(
    r"^\s*(?:[{}\[\]]+,?\s*$|\{.*[}\],]?$|\"[^\"]{1,60}\"\s*:|[\w.-]{1,40}:\s*$|-\s+[\w.-]{1,40}:\s|<[^>]+>\s*$)"
)
_MEMORY_LINE: Final = re.compile(r"^\s*[-*] \[[a-z_ ]{3,30}\] ")
_PAIR_LINE: Final = re.compile(r"^\s*[\w .-]{1,30}?\s?[:=]\s?\S.*$")
_PLUS_LINE: Final = re.compile(r"^\s*\+ ?\S")
_MINUS_LINE: Final = re.compile(r"^\s*- ?\S")
_CHAT_LINE: Final = re.compile(
    r"^\s*(?:\[?\d{1,2}[:/.]\d{2}[^\]\n]{0,20}\]?\s*-?\s*)?"
    r"[A-Z\u00c0-\u024f][\w.'-]{1,25}(?: [A-Z][\w.'-]{1,25})?\s?: \S"
)
# A separator, what shows that it is punctuation of prose after all, and how many make a table.
_SEPARATORS: Final = ((",", ", ", 2), (";", "; ", 1), ("\t", "\n", 1), ("|", "\n", 1))


def foreign_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the places of the lines that the sender did not say."""
    is_diff = any(_PLUS_LINE.match(line) or line.startswith("@@") for line in lines)
    single = {index for index, line in enumerate(lines) if _is_foreign(line, is_diff=is_diff)}
    return frozenset(single | _tabular(lines) | _runs(lines, _PAIR_LINE) | _runs(lines, _CHAT_LINE))


def _is_foreign(line: str, *, is_diff: bool) -> bool:
    if any(pattern.match(line) for pattern in (_LOG_LINE, _QUOTED_LINE, _DATA_LINE, _MEMORY_LINE)):
        return True
    return is_diff and bool(_PLUS_LINE.match(line) or _MINUS_LINE.match(line))


def _runs(lines: Sequence[str], shape: re.Pattern[str]) -> set[int]:
    """Return the lines of a ``shape`` that have a neighbour of the same shape."""
    matching = {index for index, line in enumerate(lines) if shape.match(line)}
    return {index for index in matching if index - 1 in matching or index + 1 in matching}


def _tabular(lines: Sequence[str]) -> set[int]:
    counts = [_separators(line) for line in lines]
    last = len(counts) - 1
    return {
        index
        for index, count in enumerate(counts)
        if count
        and ((index > 0 and counts[index - 1] == count) or (index < last and counts[index + 1] == count))
    }


def _separators(line: str) -> tuple[str, int] | None:
    for separator, spaced, least in _SEPARATORS:
        if line.count(separator) >= least and spaced not in line:
            return separator, line.count(separator)
    return None
