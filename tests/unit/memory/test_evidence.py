"""Candidates become evidence, and what says nothing does not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from domain.candidates import Candidate, Method
from domain.memory.assertions import Mode
from domain.memory.evidence import assertions_of, claims_by_id
from domain.memory.sentences import claim_sentence, sentence_of
from domain.memory.slots import EVERYWHERE, Slot, slot_of
from domain.memory.stances import Stance
from tests.unit.memory.builders import SCOPE, at, claim

SESSION = UUID("11111111-1111-1111-1111-111111111111")
LIVES = Candidate(
    category="personal_info",
    key="city",
    value="Porto",
    confidence=0.87654321,
    importance=7,
    said_at=at("2024-01-01"),
    message_ids=("m1",),
    excerpt="I live in Porto",
    method=Method.RULES,
    spec_version="1",
)


def test_a_candidate_becomes_one_assertion_with_its_provenance() -> None:
    (one,) = assertions_of(SCOPE, SESSION, "live", [LIVES])

    assert (one.slot, one.value, one.stance, one.session_id) == (
        Slot("home_city"),
        "Porto",
        Stance.HOLDS,
        str(SESSION),
    )
    assert (one.excerpt, one.message_ids, one.method, one.spec_version) == (
        "I live in Porto",
        ("m1",),
        "rules",
        "1",
    )
    assert one.confidence == 0.8765


def test_two_candidates_that_say_the_same_are_two_rows() -> None:
    rows = assertions_of(SCOPE, SESSION, "live", [LIVES, LIVES])

    assert len({one.assertion_id for one in rows}) == 2


@pytest.mark.parametrize(
    ("changes", "slot", "stance"),
    [
        ({"key": "previous_city"}, Slot("home_city"), Stance.HELD),
        ({"key": "dislikes"}, Slot("likes"), Stance.DENIES),
        ({"key": "dislikes", "stance": Stance.DENIES}, Slot("likes"), Stance.DENIES),
        ({"key": "sister_residence"}, Slot("home_city", "sister"), Stance.HOLDS),
        ({"about": "Sister/Ana"}, Slot("home_city", "sister/ana"), Stance.HOLDS),
        ({"about": "wife"}, Slot("home_city", "partner"), Stance.HOLDS),
        ({"about": "User"}, Slot("home_city"), Stance.HOLDS),
        ({"key": "address", "qualifier": "Work"}, Slot("address", "self", "work"), Stance.HOLDS),
    ],
)
def test_key_and_subject_say_slot_and_stance(changes: dict[str, object], slot: Slot, stance: Stance) -> None:
    (one,) = assertions_of(SCOPE, SESSION, "live", [replace(LIVES, **changes)])  # type: ignore[arg-type]

    assert (one.slot, one.stance) == (slot, stance)


@pytest.mark.parametrize(
    "changes", [{"value": " "}, {"value": "*"}, {"key": "dislikes", "stance": Stance.HELD}]
)
def test_what_says_nothing_is_left_out(changes: dict[str, object]) -> None:
    assert assertions_of(SCOPE, SESSION, "live", [replace(LIVES, **changes)]) == []  # type: ignore[arg-type]


def test_a_validity_that_ends_before_it_begins_loses_its_beginning() -> None:
    wrong = replace(LIVES, valid_from=at("2023-01-01"), valid_to=at("2022-01-01"))

    (one,) = assertions_of(SCOPE, SESSION, "live", [wrong])

    assert (one.valid_from, one.valid_to) == (None, at("2022-01-01"))


def test_forget_everything_is_said_of_every_slot() -> None:
    (one,) = assertions_of(
        SCOPE, SESSION, "live", [replace(LIVES, key="*", value="*", stance=Stance.FORGETS)]
    )

    assert one.slot == EVERYWHERE


def test_the_day_of_an_event_does_not_depend_on_the_zone_it_is_read_in() -> None:
    morning = datetime(2024, 3, 1, tzinfo=timezone(timedelta(hours=9)))
    moved = replace(LIVES, key="event", value="moved house", valid_from=morning)

    (one,) = assertions_of(SCOPE, SESSION, "live", [moved])

    assert one.claim.norm == "moved house @ 2024-03-01"
    assert replace(one, valid_from=morning.astimezone(UTC)).claim == one.claim


def test_a_time_without_a_zone_is_read_in_the_zone_of_the_statement() -> None:
    naive = replace(LIVES, valid_from=datetime(2023, 1, 1))  # noqa: DTZ001 - what is tested

    (one,) = assertions_of(SCOPE, SESSION, "live", [naive])

    assert one.valid_from == at("2023-01-01")


def test_claims_are_found_by_their_ids() -> None:
    rows = assertions_of(SCOPE, SESSION, "live", [LIVES])

    assert list(claims_by_id(rows).values()) == [rows[0].claim]


@pytest.mark.parametrize(
    ("key", "value", "stance", "sentence"),
    [
        ("city", "Porto", Stance.HOLDS, "User lives in Porto."),
        ("city", "Porto", Stance.HELD, "User used to live in Porto."),
        ("city", "Porto", Stance.DENIES, "home city: not Porto"),
        ("likes", "tea", Stance.DENIES, "User dislikes tea."),
        ("visited_places", "Oslo", Stance.PLANS, "User plans to go to Oslo."),
        ("home_address", "1 Elm", Stance.HOLDS, "User's home address is 1 Elm."),
        ("favorite_ice_cream", "mint", Stance.HOLDS, "User's favorite ice cream is mint."),
        ("runs_on", "{value} {0}", Stance.HOLDS, "runs on: {value} {0}"),
        ("city", "{value} {0}", Stance.HOLDS, "User lives in {value} {0}."),
        ("pets", "*", Stance.DENIES, "pet: not everything"),
    ],
)
def test_a_value_is_said_in_a_sentence(key: str, value: str, stance: Stance, sentence: str) -> None:
    assert sentence_of(slot_of(key), value, stance) == sentence


def test_a_sentence_about_a_relative_names_them() -> None:
    assert sentence_of(Slot("home_city", "sister/ana"), "Rome") == "User's sister Ana lives in Rome."
    assert sentence_of(Slot("diet", "sister"), "vegan") == "sister: diet: vegan"


def test_the_sentence_of_a_claim_leaves_out_the_day_of_an_event() -> None:
    assert claim_sentence(claim("event", "ran Boston @ 2022-04-18")) == "User ran boston."
    assert claim_sentence(claim("city", "Porto", Mode.PLANS)) == "User plans to move to porto."
