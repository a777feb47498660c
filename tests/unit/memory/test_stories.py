"""Stories, each also told backwards and twice, and single promises."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from domain.memory.assertions import (
    Also,
    Assertion,
    InsteadOf,
    Merge,
    Retraction,
    Same,
)
from domain.memory.fold import fold
from domain.memory.projection import Fact, State, Status, why
from domain.memory.slots import Slot, slot_of
from tests.unit.memory import stories_of_time, stories_of_values
from tests.unit.memory.builders import at, command, said
from tests.unit.memory.story import (
    HELD,
    NOW,
    Story,
    judged,
    shown,
)

STORIES = [*stories_of_values.STORIES, *stories_of_time.STORIES]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name[:70])
@pytest.mark.parametrize("order", ["told", "backwards", "twice"])
def test_story(story: Story, order: str) -> None:
    told = {"told": story.told, "backwards": story.told[::-1], "twice": [*story.told, *story.told]}[order]

    state = fold(told, story.opinions, story.commands)

    assert by_status(state, Status.ACTIVE, NOW) == story.active
    assert fold(list(told), story.opinions, story.commands) == state
    assert by_status(state, Status.SUPERSEDED, NOW) == story.superseded
    assert by_status(state, Status.DELETED, NOW) == story.deleted
    assert by_status(state, Status.EXPIRED, NOW) == story.expired
    assert {f"{one.slot}: {one.value}" for one in state.pending.values()} == story.pending
    assert len(state.clarifications) == story.questions
    assert len(state.contradictions) == story.notes


def by_status(state: State, status: Status, now: datetime) -> set[str]:
    return {shown(fact) for fact in state.facts.values() if fact.status_at(now) is status}


def facts_of(told: Sequence[Assertion], key: str | Slot) -> dict[str, Fact]:
    wanted = slot_of(key) if isinstance(key, str) else key
    return {fact.norm: fact for fact in fold(told).facts.values() if fact.slot == wanted}


def test_a_then_b_then_a_again_is_one_fact_with_two_intervals() -> None:
    days = ("2022-01-01", "2023-01-01", "2024-01-01")
    told = [said(day, "home_city", city) for day, city in zip(days, ("Porto", "Lyon", "Porto"), strict=True)]

    facts = facts_of(told, "home_city")

    assert [(i.start, i.end) for i in facts["porto"].intervals] == [
        (at(days[0]), at(days[1])),
        (at(days[2]), None),
    ]
    assert [(i.start, i.end) for i in facts["lyon"].intervals] == [(at(days[1]), at(days[2]))]
    assert facts["porto"].fact_id == next(iter(facts_of(told[:1], "home_city").values())).fact_id


def test_a_stated_start_reaches_back_but_not_over_what_was_said_then() -> None:
    told = [
        said("2022-06-01", "home_city", "Munich"),
        said("2024-06-01", "home_city", "Berlin"),
        said("2025-01-01", "home_city", "Berlin", since="2019-01-01"),
    ]

    facts = facts_of(told, "home_city")

    assert facts["berlin"].intervals[0].start == at("2022-06-01")
    assert facts["munich"].intervals[0].end == at("2022-06-01")


def test_moved_in_march_said_in_june_ends_the_old_city_in_march() -> None:
    told = [
        said("2024-01-01", "home_city", "Munich"),
        said("2024-06-01", "home_city", "Berlin", since="2024-03-01"),
    ]

    facts = facts_of(told, "home_city")

    assert facts["munich"].intervals[0].end == facts["berlin"].intervals[0].start == at("2024-03-01")


def test_a_stated_end_is_not_before_the_last_time_it_was_said_to_hold() -> None:
    told = [
        said("2024-03-01", "employer", "Acme"),
        said("2024-06-01", "employer", "Acme", stance=HELD, until="2024-01-01"),
    ]

    assert facts_of(told, "employer")["acme"].intervals[0].end == at("2024-03-01")


def test_a_stated_change_to_what_already_runs_ends_the_other_at_that_time() -> None:
    told = [
        said("2021-01-01", "hobby", "go"),
        said("2022-01-01", "hobby", "chess"),
        said("2024-01-01", "hobby", "go", amends=InsteadOf("chess")),
    ]

    assert facts_of(told, "hobby")["chess"].intervals[0].end == at("2024-01-01")


def test_a_word_about_an_earlier_period_does_not_end_the_present_one() -> None:
    told = [
        said("2022-01-01", "home_city", "Rome"),
        said("2024-01-01", "home_city", "Rome", stance=HELD, since="2010-01-01", until="2012-01-01"),
        said("2025-01-01", "home_city", "Rome", since="2009-01-01"),
    ]

    (fact,) = fold(told).facts.values()

    assert [(span.start, span.end) for span in fact.intervals] == [
        (at("2010-01-01"), at("2012-01-01")),
        (at("2012-01-01"), None),
    ]


def test_also_says_nothing_about_what_is_only_suspected() -> None:
    told = [
        said("2022-01-01", "home_city", "Oslo", confidence=0.5),
        said("2023-01-01", "home_city", "Rome", amends=Also()),
        said("2024-01-01", "home_city", "Oslo"),
    ]

    assert [fact.value for fact in fold(told).active()] == ["Oslo"]


def test_erasing_the_session_that_superseded_brings_the_older_value_back() -> None:
    told = [said("2022-01-01", "home_city", "Porto"), said("2023-01-01", "home_city", "Lyon", session="gone")]

    kept = [one for one in told if one.session_id != "gone"]

    assert [fact.value for fact in fold(kept).active()] == ["Porto"]


def test_a_fact_stays_deleted_when_the_session_that_named_it_is_erased() -> None:
    same = [judged("issue", "cannot open files", "files won't open", Same())]
    first, second = (
        said("2022-01-01", "issue", "cannot open files"),
        said("2023-01-01", "issue", "files won't open"),
    )
    (fact,) = fold([first, second], same).facts.values()
    deletion = [Retraction(target=name, at=at("2024-01-01")) for name in fact.names]

    assert not fold([first, second], same, deletion).active()
    assert not fold([second], same, deletion).active()


def test_an_event_is_one_fact_for_each_date_and_keeps_no_undated_twin() -> None:
    told = [
        said("2022-05-01", "event", "ran Boston", since="2022-04-18"),
        said("2022-06-01", "event", "ran Boston"),
        said("2023-05-01", "trip", "Japan", since="2023-03-01", stance=HELD),
    ]

    assert sorted(fact.value for fact in fold(told).active()) == ["Japan", "ran Boston"]


def test_five_sessions_rank_higher_and_add_no_row() -> None:
    told = [said(f"2023-0{n}-01", "name", "Pell", position=p) for n in range(1, 6) for p in (0, 1)]

    (fact,) = fold(told).facts.values()

    assert (fact.reinforced, len(fact.evidence)) == (4, 10)


def test_a_merged_fact_knows_the_evidence_of_its_parts() -> None:
    told = [said("2023-01-01", "hobby", "chess"), said("2024-01-01", "hobby", "go")]
    state = fold(told, [judged("hobby", "chess", "go", Merge("chess and go"))])

    (fact,) = state.active()

    assert set(why(state, fact.fact_id)) == {one.assertion_id for one in told}


def test_what_was_believed_then_is_the_fold_of_what_was_said_by_then() -> None:
    told = [
        said("2022-01-01", "home_city", "Porto"),
        said("2024-06-01", "home_city", "Lyon", since="2023-01-01"),
    ]
    by_then = [one for one in told if one.said_at <= at("2024-01-01")]

    believed, true = fold(by_then).active(), holding(fold(told), at("2024-01-01"))

    assert ([f.value for f in believed], [f.value for f in true]) == (["Porto"], ["Lyon"])


def holding(state: State, when: datetime) -> list[Fact]:
    return [
        fact
        for fact in state.facts.values()
        if any(
            (i.start is None or i.start <= when) and (i.end is None or when < i.end) for i in fact.intervals
        )
    ]


def test_a_forgotten_period_is_not_shown_again_by_a_later_word_about_the_past() -> None:
    told = [
        said("2020-01-01", "home_city", "Lyon"),
        said("2021-01-01", "home_city", "Lyon", stance=HELD),
        said("2023-01-01", "home_city", "Lyon", stance=HELD),
    ]

    (fact,) = fold(told, (), [command("2022-01-01", "home_city", "Lyon")]).facts.values()

    assert [(span.start, span.end) for span in fact.intervals] == [(None, at("2023-01-01"))]


def test_a_name_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        said(datetime(2024, 1, 1), "name", "Pell")  # noqa: DTZ001 - the fault that is refused


@pytest.mark.parametrize(
    "wrong", [{"value": "*"}, {"value": "Porto", "since": "2024-01-01", "until": "2023-01-01"}]
)
def test_a_statement_that_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"held|before"):
        said("2024-06-01", "home_city", **wrong)  # type: ignore[arg-type]
