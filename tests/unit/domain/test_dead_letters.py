"""Dead letters: what can be read of them, and what is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dead_letter_view import raw_view, redacted_view
from domain.dead_letters import job_of, tenant_of
from domain.outbox import Headers, RawRecord
from schemas import headers


def record(value: bytes | None, *, key: bytes | None = None, headers: Headers = ()) -> RawRecord:
    return RawRecord(topic="t", partition=0, offset=0, key=key, value=value, headers=headers)


@pytest.mark.parametrize(
    ("value", "key", "tenant"),
    [
        (b'{"tenant_id": "acme"}', b"other:u", "acme"),
        (b'{"user_id": "u"}', None, "default"),
        (b"{", b"acme:\xff", "acme"),
        (b"{", b"\xff:u", None),
        (b"{", b"no-colon", None),
        (b'{"tenant_id": "a\\u0000"}', None, None),
        (b'{"tenant_id": "\\ud800"}', None, None),
        (b"[" * 100_000, None, None),
        (None, None, None),
    ],
)
def test_the_tenant_is_read_where_it_can_be(
    value: bytes | None, key: bytes | None, tenant: str | None
) -> None:
    assert tenant_of(record(value, key=key)) == tenant


@given(st.binary(), st.binary())
def test_bytes_of_any_kind_are_read_and_shown(value: bytes, key: bytes) -> None:
    one = record(value, key=key, headers=(("h", value),))

    assert job_of(one) is None
    for view in (raw_view(one), redacted_view(one)):
        shown = f"{view.key}{view.value}{view.headers}"
        assert all(char.isprintable() or char in "\n\t" for char in shown if ord(char) < 0xA0)


@pytest.mark.parametrize(
    "value",
    [
        b'{"note": "my p\\u0061ssword is Xy12-hunter"}',
        b'{"password": "Xy12-hunter"}',
        b'{"deep": [{"api_key": "Xy12-hunter"}]}',
        b"my password is Xy12-hunter \xff",
        b"my pass\x00word is Xy12-hunter",
    ],
)
def test_a_secret_is_not_shown_unless_asked_for(value: bytes) -> None:
    one = record(value)

    assert "hunter" not in str(redacted_view(one))
    assert "hunter" in str(raw_view(one))


def test_a_card_number_that_is_a_number_is_not_shown() -> None:
    shown = redacted_view(record(json.dumps({"card": 4111111111111111, "age": 41}).encode())).value or ""

    assert "4111" not in shown
    assert "41" in shown


@given(
    st.lists(
        st.tuples(st.sampled_from(["dlq-topic", "dlq-partition", "dlq-offset", "dlq-replays"]), st.binary())
    )
)
def test_headers_of_any_kind_make_no_place_that_the_table_cannot_hold(given: list[tuple[str, bytes]]) -> None:
    found = headers.redriven(given)

    assert found is None or (
        found.partition < 2**31 and 0 < found.replays < 2**31 and found.topic.isprintable()
    )
