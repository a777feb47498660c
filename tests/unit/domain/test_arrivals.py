from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.arrivals import (
    EndedConversation,
    KnownSession,
    Verdict,
    content_digest,
    decide,
    is_incomplete,
    together,
)
from domain.conversation import Message, UserRef
from domain.memory.values import normalise

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
SESSION = UUID(int=7)


def message(position: int, content: str, *, role: str = "user", message_id: str = "") -> Message:
    return Message(
        message_id=message_id or f"m{position}", position=position, role=role, content=content, sent_at=AT
    )


HI, CITY = message(0, "Hi"), message(1, "I live in Porto")


def arriving(*messages: Message, ended_at: datetime = AT) -> EndedConversation:
    return EndedConversation(
        tenant_id="acme",
        user=UserRef(user_id=UUID(int=1)),
        session_id=SESSION,
        ended_at=ended_at,
        messages=messages,
    )


def known(*messages: Message, has_job: bool = True, ended_at: datetime | None = AT) -> KnownSession:
    return KnownSession(
        ended_at=ended_at,
        message_count=None,
        digest=content_digest(messages),
        messages=messages,
        revision=1,
        has_job=has_job,
    )


def test_a_first_arrival_is_accepted() -> None:
    assert decide(None, arriving(HI)).verdict is Verdict.ACCEPTED


def test_the_same_content_again_is_a_duplicate() -> None:
    assert decide(known(HI, CITY), arriving(HI, CITY)).verdict is Verdict.DUPLICATE


def test_other_case_and_white_space_are_the_same_content() -> None:
    shouted = replace(CITY, content="  i LIVE in   porto ")

    assert decide(known(HI, CITY), arriving(HI, shouted)).verdict is Verdict.DUPLICATE


@pytest.mark.parametrize(
    "again",
    [
        arriving(HI, CITY, message(2, "and work there")),
        arriving(HI, ended_at=AT + timedelta(hours=1)),
    ],
    ids=["more messages", "a later end"],
)
def test_more_messages_or_a_later_end_are_a_revision(again: EndedConversation) -> None:
    assert decide(known(HI, CITY), again).verdict is Verdict.REVISED


def test_other_content_without_a_later_end_is_a_conflict() -> None:
    other = replace(CITY, content="I live in Braga")

    assert decide(known(HI, CITY), arriving(HI, other)).verdict is Verdict.CONFLICT


def test_an_end_without_messages_takes_those_that_were_posted() -> None:
    end = replace(arriving(), messages=None)

    decision = decide(known(HI, CITY, has_job=False, ended_at=None), end)

    assert decision.verdict is Verdict.ACCEPTED
    assert decision.messages == (HI, CITY)


def test_an_end_that_announces_more_than_came_waits() -> None:
    end = replace(arriving(), messages=None, message_count=3)

    assert decide(known(HI, has_job=False, ended_at=None), end).verdict is Verdict.WAITING


def test_an_end_with_no_messages_at_all_is_empty() -> None:
    assert decide(None, arriving()).verdict is Verdict.EMPTY


def test_an_end_without_messages_waits_where_none_was_posted() -> None:
    assert decide(None, replace(arriving(), messages=None)).verdict is Verdict.WAITING


def test_the_ended_event_has_the_last_word_on_a_message() -> None:
    posted = message(1, "I live in Prto", message_id="x")
    by_place = message(1, "I live in Porto", message_id="y")

    assert together([HI, posted], [by_place]) == (HI, by_place)


@pytest.mark.parametrize(
    ("found", "announced", "incomplete"), [(0, None, True), (1, None, False), (2, 3, True), (3, 3, False)]
)
def test_what_counts_as_incomplete(found: int, announced: int | None, incomplete: bool) -> None:
    assert is_incomplete(found, announced) is incomplete


TEXTS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=12)), max_size=6)


@given(TEXTS)
def test_whatever_was_said_saying_it_again_is_a_duplicate(texts: list[tuple[str, str]]) -> None:
    said = [message(place, text, role=role) for place, (role, text) in enumerate(texts)]

    assert decide(known(*said), arriving(*said)).verdict is Verdict.DUPLICATE


@given(TEXTS, TEXTS)
def test_two_contents_share_a_digest_only_where_no_reader_sees_a_difference(
    one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    left = [message(place, text, role=role) for place, (role, text) in enumerate(one)]
    right = [message(place, text, role=role) for place, (role, text) in enumerate(other)]

    seen = [[(role, normalise(text)) for role, text in texts] for texts in (one, other)]

    assert (content_digest(left) == content_digest(right)) == (seen[0] == seen[1])


def test_a_part_of_what_is_known_changes_nothing() -> None:
    assert decide(known(HI, CITY), arriving(CITY)).verdict is Verdict.DUPLICATE
