"""A list of particulars that a user pastes about themselves: "Name: Dana", or a table of it.

Lines of that shape are as a rule somebody else's data; they are the user's own only where the message says
so. Where it asks for something to be done with the text, it has to call it "my profile": what is "about me"
may be about a character, what is mine is not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_IS_MINE: Final = re.compile(
    r"\b(?:(?:a bit |some facts |facts |more )?about me|my (?:profile|details|info|information|particulars|"
    r"personal data|data|bio|card)|that(?:'s| is) me|this is me|me in (?:short|a nutshell)|"
    r"\u00fcber mich|meine? (?:profil|daten|angaben|steckbrief)|das bin ich|"
    r"(?:\u00e0 propos de|sur) moi|mon profil|mes (?:infos?|coordonn\u00e9es|donn\u00e9es)|c'est moi|"
    r"sobre m\u00ed|mi perfil|mis datos|es[ea] soy yo)\b",
    re.IGNORECASE,
)
_IS_MADE_UP: Final = re.compile(
    r"\b(?:parse|convert|character|persona|example|template|fake|test data|sample|"
    r"ejemplo|exemple|beispiel)\b",
    re.IGNORECASE,
)
_IS_MY_OWN: Final = re.compile(
    r"\b(?:here(?:'s| is)|this is|see|below is|attached is)? ?my (?:own |current |linkedin |dating |work )?"
    r"(?:profile|details|particulars|bio|cv|resume)\b|\bmein(?:e|en)? (?:profil|steckbrief|lebenslauf)\b|"
    r"\bmon (?:profil|cv)\b|\bmi (?:perfil|cv)\b",
    re.IGNORECASE,
)
_IS_WORK: Final = re.compile(
    r"\b(?:translate|rewrite|rephrase|paraphrase|proof-?read|summari[sz]e|correct|fix|edit|improve|polish|"
    r"shorten|review|grade|"
    r"\u00fcbersetz\w*|korrigier\w*|traduis\w*|traduire|corrige\w*|traduce|resume)\b",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    r"^\s*(?:[-*\u2022|]\s*)?\**(?P<key>[^\W\d_][\w '/-]{0,30}?)\**\s*[:=|\t]\**\s*"
    r"(?P<value>[^|\s][^|\n]{0,120}?)\s*\|?\s*$"
)
_RULER: Final = re.compile(r"[\s|:+-]+")
_LEAST_PAIRS: Final = 2
_MOST_PAIRS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Particular:
    """One line of a profile."""

    key: str
    value: str
    said: str


def particulars(text: str) -> tuple[Sequence[Particular], str]:
    """Return the particulars that ``text`` lists about its sender, and the text without them."""
    if not _IS_MINE.search(text) or _IS_MADE_UP.search(text):
        return (), text
    if _IS_WORK.search(text) and not _IS_MY_OWN.search(text):
        return (), text
    lines = text.split("\n")
    found = {place: pair for place, line in enumerate(lines) if (pair := _pair(line)) is not None}
    if len(found) < _LEAST_PAIRS:
        return _of_a_table(lines), text
    kept = "\n".join("" if place in found else line for place, line in enumerate(lines))
    return tuple(found.values())[:_MOST_PAIRS], kept


def _pair(line: str) -> Particular | None:
    match = _PAIR.match(line)
    return Particular(key=match["key"], value=match["value"], said=line.strip()) if match else None


def _of_a_table(lines: Sequence[str]) -> Sequence[Particular]:
    """Read a table with one line of values below its heads."""
    rows = [line for line in lines if line.count("|") >= _LEAST_PAIRS and not _RULER.fullmatch(line)]
    if len(rows) != 2:  # noqa: PLR2004 - heads and values
        return ()
    return tuple(_columns(rows))


def _columns(rows: Sequence[str]) -> Iterator[Particular]:
    heads, values = ([cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows)
    for key, value in zip(heads, values, strict=False):
        if key and value:
            yield Particular(key=key, value=value, said=rows[1].strip())
