"""Dates as people's programs write them: which number is the day is found out from all of them together."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Final

_DATE: Final = re.compile(
    r"(?P<one>\d{1,4})[./-](?P<two>\d{1,2})[./-](?P<three>\d{2,4}),?\s+"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?\s*(?P<half>[ap]\.?\s?m\.?)?",
    re.IGNORECASE,
)
_LAST_MONTH: Final = 12
_CENTURY: Final = 2000


class DateOrder(StrEnum):
    """Which part of a date comes first."""

    DAY = "dmy"
    MONTH = "mdy"
    YEAR = "ymd"


def day_first(written: str) -> datetime | None:
    """Read one date whose first number is the day, unless that cannot be; None where it is no date."""
    return date_of(written, order_of([written])[0]) if written else None


def order_of(written: Sequence[str]) -> tuple[DateOrder, bool]:
    """Return the order of the dates, and whether they leave no doubt about it.

    A number above twelve is no month; else the order in which time does not run backwards; else the day is
    first, but not where the clock has twelve hours.
    """
    found = [match for one in written if (match := _DATE.search(one)) is not None]
    if any(len(match["one"]) == len("2024") for match in found):
        return DateOrder.YEAR, True
    if any(int(match["one"]) > _LAST_MONTH for match in found):
        return DateOrder.DAY, True
    if any(int(match["two"]) > _LAST_MONTH for match in found):
        return DateOrder.MONTH, True
    forwards = [order for order in (DateOrder.DAY, DateOrder.MONTH) if _runs_forwards(written, order)]
    if len(forwards) == 1:
        return forwards[0], True
    has_halves = any(match["half"] for match in found)
    is_dotted = any("." in one[: match.end("three")] for one, match in zip(written, found, strict=False))
    return (DateOrder.MONTH if has_halves and not is_dotted else DateOrder.DAY), is_dotted


def date_of(written: str, order: DateOrder) -> datetime | None:
    """Read the date in ``written``, without a zone; None where it is none."""
    match = _DATE.search(written)
    if match is None:
        return None
    one, two, three = int(match["one"]), int(match["two"]), int(match["three"])
    year, month, day = {
        DateOrder.DAY: (three, two, one),
        DateOrder.MONTH: (three, one, two),
        DateOrder.YEAR: (one, two, three),
    }[order]
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower().startswith("p") else 0)
    try:
        return datetime(  # noqa: DTZ001 - the zone is told apart
            year + _CENTURY if year < 100 else year,  # noqa: PLR2004 - two digits
            month,
            day,
            hour,
            int(match["minute"]),
            int(match["second"] or 0),
        )
    except ValueError:
        return None


def _runs_forwards(written: Sequence[str], order: DateOrder) -> bool:
    times = [time for one in written if (time := date_of(one, order)) is not None]
    return all(earlier <= later for earlier, later in pairwise(times)) and len(set(times)) > 1
