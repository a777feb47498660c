"""The wire: what is accepted, what is refused and how."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.decoding import decode
from consumers.translation import Repair, Translator
from domain.arrivals import EndedConversation
from domain.errors import InvalidInputError, UndecodableError
from domain.outbox import RawRecord
from schemas import conversation as wire
from schemas.injection import InjectionRequest
from schemas.jobs import ExtractionJob
from schemas.queries import JobsGet

SESSION = UUID("00000000-0000-4000-8000-000000000001")
USER = UUID("00000000-0000-4000-8000-000000000002")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(value: bytes = b"", **fields: Any) -> RawRecord:
    return RawRecord(
        **{
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "key": None,
            "value": value,
            "headers": (),
            "timestamp": NOW,
            **fields,
        }
    )


def ended(**fields: Any) -> bytes:
    body = {"session_id": str(SESSION), "user_id": str(USER), "ended_at": "2026-03-01T10:00:00Z", **fields}
    return json.dumps({name: value for name, value in body.items() if value is not ...}).encode()


def translated(raw: bytes) -> tuple[EndedConversation, Translator]:
    translator = Translator()
    return translator.ended(decode(wire.ConversationEnded, raw), record(raw)), translator


def test_unknown_fields_are_ignored_and_the_avatar_defaults_to_nil() -> None:
    conversation, _ = translated(ended(mood="sunny", messages=[{"role": "user", "content": "hi", "x": 1}]))

    assert conversation.avatar_id == UUID(int=0)
    assert conversation.messages is not None
    assert conversation.messages[0].content == "hi"


def test_an_empty_list_of_messages_is_not_the_same_as_none() -> None:
    assert translated(ended(messages=[]))[0].messages == ()
    assert translated(ended())[0].messages is None


@pytest.mark.parametrize(
    ("ended_at", "timezone", "expected"),
    [
        ("2026-03-01T10:00:00+02:00", None, datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01T10:00:00", "Europe/Berlin", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("2026-03-01T10:00:00", None, datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00", "Not/AZone", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00", "../../etc/passwd", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_takes_the_sessions_and_is_counted(
    ended_at: str, timezone: str | None, expected: datetime
) -> None:
    conversation, translator = translated(ended(ended_at=ended_at, timezone=timezone))

    assert conversation.ended_at == expected
    assert translator.repairs[Repair.NAIVE_TIME] == ("+" not in ended_at)


def test_a_messages_own_zone_comes_before_the_sessions() -> None:
    message = {
        "role": "user",
        "content": "hi",
        "sent_at": "2026-03-01T10:00:00",
        "timezone": "Asia/Tokyo",
    }

    conversation, _ = translated(ended(timezone="Europe/Berlin", messages=[message]))

    assert conversation.messages is not None
    assert conversation.messages[0].sent_at == datetime(2026, 3, 1, 1, tzinfo=UTC)


def test_contents_of_parts_are_joined_and_a_message_without_a_text_is_skipped_and_counted() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}, "two", None]
    messages = [
        {"role": "user", "content": parts},
        {"role": "user", "content": [{"type": "image"}]},
        {"role": "user", "content": 5},
        {"role": "narrator", "content": "three"},
    ]

    conversation, translator = translated(ended(messages=messages))

    assert conversation.messages is not None
    assert [(m.position, m.role, m.content) for m in conversation.messages] == [
        (0, "user", "one\ntwo"),
        (3, "narrator", "three"),
    ]
    assert translator.repairs[Repair.EMPTY_MESSAGE] == 2


def test_nul_lone_surrogates_and_invalid_utf8_are_cleaned_and_never_refuse_a_session() -> None:
    raw = ended(messages=[{"role": "user", "content": "a\x00b"}, {"role": "user", "content": "c"}])
    raw = raw.replace(b'"c"', b'"c\\ud800\xff"')

    conversation, translator = translated(raw)

    assert conversation.messages is not None
    assert conversation.messages[0].content == "ab"
    conversation.messages[1].content.encode()
    assert translator.repairs[Repair.CLEANED_TEXT] >= 1


@pytest.mark.parametrize("name", [b"Jos\xe9", b"Jos\\ud800", b"Jos\xef\xbf\xbd"])
@pytest.mark.parametrize("field", ["tenant_id", "external_user_id"])
def test_an_id_that_is_not_utf8_is_refused_since_two_of_them_could_become_one(
    field: str, name: bytes
) -> None:
    raw = ended(**{field: "NAME"}).replace(b"NAME", name)

    with pytest.raises(InvalidInputError, match=field):
        decode(wire.ConversationEnded, raw)


def test_messages_with_repeated_ids_are_all_kept_under_ids_of_their_own() -> None:
    ids = ("a", "a#2", "a", "a#2#", "a")
    messages = [
        {"message_id": given, "role": "user", "content": f"{place}"} for place, given in enumerate(ids)
    ]

    conversation, _ = translated(ended(messages=messages))

    assert conversation.messages is not None
    assert [message.content for message in conversation.messages] == ["0", "1", "2", "3", "4"]
    assert len({message.message_id for message in conversation.messages}) == len(ids)


def test_a_transcript_becomes_turns_where_it_says_who_speaks() -> None:
    conversation, _ = translated(ended(transcript="User: I moved.\nTo Oslo.\nAssistant: Nice: really."))

    assert conversation.messages is not None
    assert [(m.role, m.content) for m in conversation.messages] == [
        ("user", "I moved.\nTo Oslo."),
        ("assistant", "Nice: really."),
    ]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (ended(user_id=...), ""),
        (ended(session_id="SECRET words"), "session_id"),
        (ended(ended_at="SECRET words"), "ended_at"),
        (ended(ended_at="0001-01-01T00:00:00Z"), "ended_at"),
        (ended(external_user_id="SECRET\x00words"), "external_user_id"),
        (ended(messages=[{"role": ["SECRET words"], "content": "x"}]), "messages.0.role"),
        (ended(messages=[], transcript="SECRET words"), ""),
    ],
)
def test_a_refusal_names_the_field_and_never_quotes_the_sender(raw: bytes, field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        decode(wire.ConversationEnded, raw)

    assert refused.value.field == field
    assert not isinstance(refused.value, UndecodableError)
    assert "SECRET" not in str(refused.value)
    assert "expected" in str(refused.value).lower() or "should" in str(refused.value).lower()


@pytest.mark.parametrize("raw", [None, b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5_000 + b"x"])
def test_what_is_no_json_is_told_apart_from_what_is_no_message(raw: bytes | None) -> None:
    with pytest.raises(UndecodableError):
        decode(wire.ConversationEnded, raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(raw: bytes) -> None:
    for model in (wire.ConversationEnded, wire.MessagePosted, InjectionRequest, JobsGet, ExtractionJob):
        try:
            decode(model, raw)
        except InvalidInputError:
            continue
