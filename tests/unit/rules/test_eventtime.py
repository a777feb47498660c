from datetime import date, datetime

import pytest

from domain.rules.eventtime import EventClock, moved

CLOCK = EventClock(
    {
        "shifts": {"yesterday": "-1 day", "last month": "-1 month"},
        "counted": {r"(?P<count>\d{1,3}|two|umpteen) (?P<unit>days?|years?|moons?) ago": "-1"},
        "units": {"day": "day|days", "year": "year|years"},
        "numbers": {"2": "two"},
        "months": {"3": "march", "9": "september"},
        "since": r"\b(?:since|in) (?:[a-z]+ )?(?:(?:19|20)\d\d|[a-z]+)\b",
    }
)
AT = datetime.fromisoformat("2024-03-31T10:00:00+02:00")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I came yesterday", date(2024, 3, 30)),
        ("I came last month", date(2024, 2, 29)),
        ("I came two years ago", date(2022, 3, 31)),
        ("I came 10 days ago", date(2024, 3, 21)),
        ("I came 999 years ago", None),
        ("I came umpteen years ago", None),
        ("I came 3 moons ago", None),
        ("here since 2019", date(2019, 1, 1)),
        ("here since september 2019", date(2019, 9, 1)),
        ("here since march", date(2024, 3, 1)),
        ("here since september", date(2023, 9, 1)),
        ("here since breakfast", None),
        ("here for good", None),
    ],
)
def test_words_name_a_day(text: str, expected: date | None) -> None:
    assert CLOCK.resolve(text, AT) == expected


def test_a_month_to_come_is_the_next_one() -> None:
    assert CLOCK.resolve("in september", AT, ahead=True) == date(2024, 9, 1)
    assert CLOCK.resolve("in march", AT, ahead=True) == date(2024, 3, 1)


def test_a_language_without_words_for_time_names_no_day() -> None:
    assert EventClock({}).resolve("yesterday, since 2019", AT) is None


@pytest.mark.parametrize(
    ("day", "number", "unit", "expected"),
    [
        (date(2024, 1, 31), 1, "month", date(2024, 2, 29)),
        (date(2024, 12, 31), 1, "month", date(2025, 1, 31)),
        (date(2024, 2, 29), -1, "year", date(2023, 2, 28)),
        (date(2024, 11, 30), 1, "month", date(2024, 12, 30)),
        (date(2024, 1, 1), 2, "week", date(2024, 1, 15)),
        (date(1, 1, 1), -1, "day", None),
        (date(1, 1, 1), -1, "month", None),
        (date(9999, 12, 1), 1, "year", None),
    ],
)
def test_days_are_moved_within_the_calendar(day: date, number: int, unit: str, expected: date | None) -> None:
    assert moved(day, number, unit) == expected
