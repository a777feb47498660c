"""When a stated event happened, from its words and the time of the message, in the message's own zone."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

_YEAR: Final = re.compile(r"(?<!\d)(19[3-9]\d|20\d\d)(?!\d)")
_WORD: Final = re.compile(r"[^\W\d_]+")
_MOST_UNITS: Final = 200


class EventClock:
    """Resolves the relative dates of one language."""

    def __init__(self, words: Mapping[str, object]) -> None:
        self._shifts = [
            (re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), shift)
            for pattern, shift in _pairs(words, "shifts")
        ]
        self._counted = [
            (re.compile(pattern, re.IGNORECASE), sign) for pattern, sign in _pairs(words, "counted")
        ]
        self._units = {word: unit for unit, group in _pairs(words, "units") for word in group.split("|")}
        self._numbers = _by_word(words, "numbers")
        self._months = _by_word(words, "months")
        self._since = re.compile(str(words.get("since", r"(?!)")), re.IGNORECASE)

    def resolve(self, text: str, at: datetime, *, ahead: bool = False) -> date | None:
        """Return the day that ``text`` speaks of, or the first day of its month or year.

        A month without a year is the last one before ``at``, and with ``ahead`` the next one after it.
        """
        day = self._relative(text, at.date())
        if day is not None:
            return day
        match = self._since.search(text)
        if match is None:
            return None
        year = _YEAR.search(match.group())
        words = _WORD.findall(match.group().casefold())
        month = next((self._months[word] for word in words if word in self._months), None)
        if year:
            return date(int(year.group()), month or 1, 1)
        return None if month is None else _nearest(month, at.date(), ahead=ahead)

    def _relative(self, text: str, day: date) -> date | None:
        for pattern, shift in self._shifts:
            if pattern.search(text):
                count, of = shift.split()
                return moved(day, int(count), of)
        for pattern, sign in self._counted:
            match = pattern.search(text)
            unit = self._units.get(match["unit"].casefold()) if match else None
            if match is None or unit is None:
                continue
            number = self._number(match["count"].casefold())
            if number is not None:
                return moved(day, int(sign) * number, unit)
        return None

    def _number(self, word: str) -> int | None:
        number = int(word) if word.isascii() and word.isdigit() else self._numbers.get(word)
        return number if number and number < _MOST_UNITS else None


def moved(day: date, number: int, unit: str) -> date | None:
    """Shift ``day`` by ``number`` units; a month keeps the day where it has one; None beyond the calendar."""
    try:
        if unit in ("day", "week"):
            return day + timedelta(days=number * (7 if unit == "week" else 1))
        months = day.year * 12 + day.month - 1 + number * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        return date(year, month + 1, min(day.day, _length(year, month + 1)))
    except (ValueError, OverflowError):
        return None


def _length(year: int, month: int) -> int:
    return (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day


def _nearest(month: int, day: date, *, ahead: bool) -> date:
    if ahead:
        return date(day.year + (month < day.month), month, 1)
    return date(day.year - (month > day.month), month, 1)


def _by_word(words: Mapping[str, object], name: str) -> dict[str, int]:
    return {word: int(number) for number, group in _pairs(words, name) for word in group.split("|")}


def _pairs(words: Mapping[str, object], name: str) -> list[tuple[str, str]]:
    table = words.get(name, {})
    return [(str(key), str(value)) for key, value in table.items()] if isinstance(table, Mapping) else []
