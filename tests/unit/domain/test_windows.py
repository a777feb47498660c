from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.conversation import Message, SessionText
from domain.windows import owns, window_digest, windows_of

AT = datetime(2025, 6, 15, tzinfo=UTC)


def session(*contents: str) -> SessionText:
    messages = tuple(
        Message(message_id=f"m{place}", position=place, role="user", content=content, sent_at=AT)
        for place, content in enumerate(contents)
    )
    return SessionText(session_id=UUID(int=1), ended_at=AT, messages=messages)


sessions = st.lists(st.text(alphabet="ab. \n", max_size=60), max_size=12).map(lambda texts: session(*texts))


def test_a_short_session_is_one_window() -> None:
    (window,) = windows_of(session("hello", "", "bye"))

    assert [message.content for message in window.messages] == ["hello", "", "bye"]
    assert window.overlap == 0


def test_a_session_without_messages_has_no_window() -> None:
    assert windows_of(session()) == []


def test_the_next_window_begins_with_the_last_turns_of_the_one_before() -> None:
    first, second = windows_of(session(*["a" * 10] * 6), max_chars=45, overlap=2)

    assert [message.message_id for message in first.messages] == ["m0", "m1", "m2", "m3"]
    assert [message.message_id for message in second.messages] == ["m2", "m3", "m4", "m5"]
    assert second.overlap == 2


def test_a_turn_over_the_limit_is_split_at_a_border() -> None:
    windows = windows_of(session("One two three. Four five six."), max_chars=20)

    assert [[message.content for message in window.messages] for window in windows] == [
        ["One two three. "],
        ["Four five six."],
    ]
    assert {message.message_id for window in windows for message in window.messages} == {"m0"}


@given(sessions, st.integers(5, 40), st.integers(0, 3))
def test_every_turn_is_new_once_and_no_window_is_too_long(
    text: SessionText, limit: int, overlap: int
) -> None:
    windows = windows_of(text, max_chars=limit, overlap=overlap)

    new = [message for window in windows for message in window.new_messages]
    said: dict[str, str] = {}
    for message in new:
        said[message.message_id] = said.get(message.message_id, "") + message.content
    assert said == {message.message_id: message.content for message in text.messages}
    assert all(sum(len(message.content) for message in window.messages) <= limit for window in windows)


@given(sessions, st.integers(5, 40), st.integers(0, 3))
def test_an_id_is_either_context_or_new(text: SessionText, limit: int, overlap: int) -> None:
    for window in windows_of(text, max_chars=limit, overlap=overlap):
        context = {message.message_id for message in window.messages[: window.overlap]}
        assert not any(owns(window, [message_id]) for message_id in context)
        assert all(owns(window, [message.message_id]) for message in window.new_messages)


def test_a_statement_belongs_to_the_window_where_the_last_of_its_messages_is_new() -> None:
    first, second = windows_of(session(*["a" * 10] * 3), max_chars=20, overlap=1)

    assert owns(first, ["m0", "m1"])
    assert not owns(second, ["m1"])
    assert owns(second, ["m1", "m2"])


@pytest.mark.parametrize("change", [{"content": "other"}, {"role": "assistant"}, {"message_id": "x"}])
def test_a_digest_names_what_is_read(change: dict[str, str]) -> None:
    (window,) = windows_of(session("hello"))
    (message,) = window.messages

    changed = replace(window, messages=(replace(message, **change),))  # type: ignore[arg-type]
    assert window_digest(window) != window_digest(changed)
    assert window_digest(window) == window_digest(replace(window, ended_at=datetime.now(UTC)))
