"""Candidates keep to what was offered: cited messages, their time and their order."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from domain.candidates import Candidate, Method
from domain.conversation import Message
from domain.memory.assertions import Corrects, Stance
from domain.model_answer import read_answer
from domain.model_candidates import Provenance, candidates_of, moment_of, zone_of
from domain.windows import Window

START = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)


def window(*texts: str, overlap: int = 0, timezone: str | None = None) -> Window:
    """Build a window whose turns alternate, the user's first."""
    messages = tuple(
        Message(
            message_id=f"m{place}",
            position=place,
            role="assistant" if place % 2 else "user",
            content=text,
            sent_at=START + timedelta(minutes=place),
        )
        for place, text in enumerate(texts)
    )
    return Window(
        session_id=UUID(int=1),
        index=0,
        messages=messages,
        overlap=overlap,
        ended_at=START + timedelta(hours=1),
        timezone=timezone,
        language=None,
    )


TALK = window("I live in Porto", "Nice, and the cat?", "Mia is five", "Oh", "bye")


def candidates(*memories: dict[str, object], of: Window = TALK) -> tuple[Candidate, ...]:
    plain: dict[str, object] = {"category": "fact", "fact_key": "home_city", "fact_value": "Porto"}
    answer = read_answer(json.dumps({"memories": [plain | memory for memory in memories]}))
    return candidates_of(answer, of, Provenance(model="m", spec_version="v"))


def test_a_candidate_is_of_the_time_of_the_message_that_says_it() -> None:
    (found,) = candidates({"source_message_ids": ["m2", "m0"]})

    assert found.message_ids == ("m0", "m2")
    assert found.said_at == START
    assert (found.method, found.model, found.spec_version) == (Method.LLM, "m", "v")


def test_ids_that_were_not_offered_are_dropped() -> None:
    (found,) = candidates({"source_message_ids": ["m0", "m99", "invented"]})

    assert found.message_ids == ("m0",)


@pytest.mark.parametrize("cited", [["[m2]"], "m2, m3", ["<m2>", 7], [" m2 "]])
def test_an_id_is_known_in_the_spellings_of_models(cited: object) -> None:
    assert candidates({"source_message_ids": cited})[0].message_ids[0] == "m2"


def test_without_an_offered_id_the_excerpt_says_which_message_is_meant() -> None:
    (found,) = candidates({"source_message_ids": ["x"], "source_excerpt": "mia  IS five"})

    assert found.message_ids == ("m2",)
    assert found.said_at == START + timedelta(minutes=2)


def test_without_an_excerpt_the_value_says_which_message_is_meant() -> None:
    (found,) = candidates({"source_message_ids": [], "fact_value": "porto"})

    assert found.message_ids == ("m0",)


def test_without_any_source_it_was_said_in_the_users_last_message() -> None:
    (found,) = candidates({"source_message_ids": [], "fact_value": "Lyon"})

    assert found.message_ids == ()
    assert found.said_at == START + timedelta(minutes=4)


def test_candidates_are_numbered_in_the_order_in_which_they_were_said() -> None:
    found = candidates(
        {"fact_value": "late", "source_message_ids": ["m4"]},
        {"fact_value": "early", "source_message_ids": ["m0"]},
        {"fact_value": "early too", "source_message_ids": ["m0"]},
        {"fact_value": "unsourced"},
    )

    assert [one.value for one in found] == ["early", "early too", "late", "unsourced"]
    assert [one.position for one in found] == [0, 1, 2, 3]


def test_what_a_model_repeats_is_proposed_once() -> None:
    assert len(candidates({}, {}, {})) == 1


def test_what_rests_on_the_overlap_alone_is_left_to_the_window_before() -> None:
    later = window("I live in Porto", "Nice", "With Mia", overlap=2)

    found = candidates({"source_message_ids": ["m0"]}, {"source_message_ids": ["m0", "m2"]}, of=later)

    assert [one.message_ids for one in found] == [("m0", "m2")]


def test_what_only_the_assistant_said_is_not_the_users() -> None:
    (found,) = candidates({"source_message_ids": ["m1"]})

    assert found.asserted_by == "assistant"


@pytest.mark.parametrize("named", [None, "", "user", "The User", "self"])
def test_the_user_has_one_name(named: str | None) -> None:
    assert candidates({"about": named})[0].about == "self"


def test_stance_subject_kind_and_correction_come_through() -> None:
    (found,) = candidates(
        {"about": "Sister/Ana", "qualifier": "Home", "stance": "denies", "corrects": "Lyon"}
    )

    assert (found.about, found.qualifier, found.stance) == ("sister/ana", "home", Stance.DENIES)
    assert found.amends == Corrects("Lyon")
    assert candidates({"corrects": True})[0].amends == Corrects(None)
    assert candidates({"corrects": None})[0].amends is None


def test_dates_without_a_zone_are_the_users() -> None:
    here = window("I live in Porto", timezone="Europe/Lisbon")

    (found,) = candidates({"expires_at": "2024-06-01", "valid_from": "2019"}, of=here)

    assert found.expires_at == datetime(2024, 6, 1, tzinfo=ZoneInfo("Europe/Lisbon"))
    assert found.valid_from == datetime(2019, 1, 1, tzinfo=ZoneInfo("Europe/Lisbon"))


@pytest.mark.parametrize("text", ["", "soon", "2024-13-01", "0000", "9999999", "in May", "2024-02-30T10:00"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert moment_of(text, UTC) is None


@pytest.mark.parametrize("name", [None, "", "Nowhere/Land", "../../etc/passwd", "/etc/localtime", "x" * 300])
def test_a_zone_that_nobody_knows_is_utc(name: str | None) -> None:
    assert zone_of(name) is UTC
