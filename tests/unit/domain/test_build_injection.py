from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build_injection import pack
from domain.injection import RankedFact
from domain.prompt_text import FOOTER, HEADER, fact_line, quoted

AT = datetime(2024, 5, 1, tzinfo=UTC)


def fact(number: int, value: str, key: str = "home_city") -> RankedFact:
    return RankedFact(
        fact_id=UUID(int=number),
        category="personal_info",
        fact_key=key,
        value=value,
        confidence=0.9,
        last_said_at=AT,
    )


def test_the_text_is_that_of_the_original_service() -> None:
    _, text = pack([fact(1, "Porto")], 2000)

    assert text == (
        "## User Memory\n"
        "- [personal_info] home_city: Porto\n"
        "\nUse these facts to personalize your responses where relevant.\n"
    )


def test_without_facts_there_is_no_text() -> None:
    assert pack([], 2000) == ((), "")


def test_facts_of_which_none_fits_leave_header_and_footer() -> None:
    assert pack([fact(1, "x" * 200)], 120) == ([], HEADER + FOOTER)


def test_packing_stops_at_the_first_line_that_does_not_fit() -> None:
    budget = len(HEADER) + len(FOOTER) + 2 * len(fact_line("personal_info", "home_city", "Porto"))

    chosen, text = pack([fact(1, "Porto"), fact(2, "y" * 100), fact(3, "Porto")], budget)

    assert [one.fact_id for one in chosen] == [UUID(int=1)]
    assert len(text) <= budget


@given(st.lists(st.text(max_size=60), max_size=20), st.integers(min_value=0, max_value=800))
def test_the_text_never_exceeds_its_budget_but_for_the_frame(values: list[str], budget: int) -> None:
    chosen, text = pack([fact(place, value) for place, value in enumerate(values)], budget)

    assert len(text) <= max(budget, len(HEADER) + len(FOOTER))
    assert len(chosen) <= len(values)


HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("#>-*`|<>[]{}\n\r\t\v\f\x00\x1b\u2028\u2029\u202e\u200b\u0085:\\\"'"), st.characters()
    ),
    max_size=80,
)


@given(HOSTILE)
def test_a_value_is_one_line_and_opens_nothing(value: str) -> None:
    line = fact_line("fact", "note", value)

    assert line.count("\n") == 1
    assert line.splitlines(keepends=True) == [line]
    assert line.startswith("- [fact] note: ")
    assert not set(quoted(value)) & set("<>`[]{}")


@pytest.mark.parametrize(
    "kept",
    [
        "Porto",
        "müde",
        "東京",
        "C++ and C#",
        "50 %",
        "naïve café",
        "Анна",
        "10:30",
        "+44 7700 900123",
        "-5 degrees",
    ],
)
def test_ordinary_values_are_shown_as_they_were_said(kept: Collection[str]) -> None:
    assert quoted(str(kept)) == kept
