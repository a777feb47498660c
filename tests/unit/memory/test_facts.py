"""A row shows what the fact is, and where it comes from."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from domain.memory.assertions import (
    Judgement,
    Merge,
    Stance,
)
from domain.memory.facts import as_periods, row_of
from domain.memory.fold import Opinion, fold
from domain.memory.projection import Interval
from tests.unit.memory.builders import SCOPE, at, claim, said


def test_a_row_carries_the_provenance_of_the_value_it_shows() -> None:
    first = said("2023-01-01", "home_city", "Porto", session="s1")
    second = replace(
        said("2024-01-01", "home_city", "PORTO", session="s2"),
        excerpt="I live in PORTO",
        content="User lives in PORTO.",
        message_ids=("m1",),
        method="rules",
        reasoning="said so",
    )
    (fact,) = fold([first, second]).facts.values()

    row = row_of(fact, SCOPE, {one.assertion_id: one for one in (first, second)})

    assert (row.fact_value, row.source_session_id, row.source_excerpt) == ("PORTO", "s2", "I live in PORTO")
    assert (row.content, row.source_message_ids, row.extraction_method) == (
        "User lives in PORTO.",
        ("m1",),
        "rules",
    )
    assert (row.fact_key, row.polarity, row.memory_type, row.slot) == (
        "home_city",
        "positive",
        "long",
        "home_city|self|",
    )


def test_a_merged_text_is_marked_as_merged_and_has_a_sentence_of_its_own() -> None:
    told = [said("2023-01-01", "hobby", "chess"), said("2024-01-01", "hobby", "go")]
    judged: list[Opinion] = [
        Judgement(left=claim("hobby", "chess"), right=claim("hobby", "go"), verdict=Merge("chess and go"))
    ]
    (fact,) = fold(told, judged).active()

    row = row_of(fact, SCOPE, {one.assertion_id: one for one in told})

    assert (row.fact_value, row.extraction_method) == ("chess and go", "merged")
    assert row.content == "User's hobby is chess and go."


def test_what_was_only_ever_told_as_past_is_shown_as_past() -> None:
    one = replace(
        said("2024-01-01", "home_city", "Rome", stance=Stance.HELD), content="User used to live in Rome."
    )
    (fact,) = fold([one]).facts.values()

    assert row_of(fact, SCOPE, {one.assertion_id: one}).content == "User used to live in Rome."


MOMENTS = st.none() | st.integers(0, 9).map(lambda day: at("2024-01-01") + timedelta(days=day))


@given(st.lists(st.builds(Interval, MOMENTS, MOMENTS)))
def test_periods_are_in_the_normal_form_of_a_multirange(intervals: list[Interval]) -> None:
    periods = as_periods(intervals)

    assert as_periods([Interval(*one) for one in periods]) == periods
    for one, following in pairwise(periods):
        assert one[1] is not None
        assert following[0] is not None
        assert one[1] < following[0]
    for day in range(10):
        moment = at("2024-01-01") + timedelta(days=day, hours=12)
        assert any(_covers(one, moment) for one in periods) == any(
            _covers((one.start, one.end), moment) for one in intervals
        )


def _covers(period: tuple[object, object], moment: object) -> bool:
    start, end = period
    return (start is None or start <= moment) and (end is None or moment < end)  # type: ignore[operator]
