"""The months and years that a question names, as periods (docs/architecture/retrieval.md, "The score")."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

Period = tuple[datetime, datetime]

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NUMBERS: Final = {name: number for number, name in enumerate(_MONTHS, 1)}
# Capitalised only: "may" and "march" are words.
_NAMED: Final = re.compile(rf"\b(?P<month>{'|'.join(_MONTHS)})\b(?:,? (?P<of>(?:19|20)\d\d)\b)?")
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_YEARS_BACK: Final = 5


def named_periods(text: str, now: datetime) -> list[Period]:
    """Return the months and years that ``text`` names, in UTC; a month alone is that of each late year."""
    found = list(_months(text, now))
    left = _NAMED.sub(" ", text)
    return found + [_year(int(year.group())) for year in _YEAR.finditer(left)]


def _months(text: str, now: datetime) -> Iterator[Period]:
    years = [int(year.group()) for year in _YEAR.finditer(text)]
    for named in _NAMED.finditer(text):
        month = _NUMBERS[named["month"]]
        if named["of"]:
            yield _month(int(named["of"]), month)
        else:
            for year in years or range(now.year - _YEARS_BACK, now.year + 1):
                yield _month(year, month)


def _month(year: int, month: int) -> Period:
    after = (year + 1, 1) if month == len(_MONTHS) else (year, month + 1)
    return datetime(year, month, 1, tzinfo=UTC), datetime(*after, 1, tzinfo=UTC)


def _year(year: int) -> Period:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
