import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.tracing import Traceparent, continued, parse, started, traceparent_of, with_traceparent

VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_valid_header_is_read() -> None:
    parsed = parse(VALID)

    assert parsed is not None
    assert parsed == Traceparent(trace_id=TRACE, parent_id="00f067aa0ba902b7", flags=1)
    assert parsed.is_sampled
    assert parsed.header == VALID


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "00",
        VALID.upper(),
        VALID + "-extra",
        "ff" + VALID[2:],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-00f067aa0ba902b7-01",
        VALID + "\n",
        b"\xff" * 55,
        "01" + VALID[2:] + "-" + "x" * 300,
    ],
)
def test_what_breaks_the_format_is_no_place_in_a_trace(value: str | bytes | None) -> None:
    assert parse(value) is None


def test_a_later_version_with_more_fields_is_read_as_far_as_it_is_known() -> None:
    parsed = parse("01" + VALID[2:-2] + "ff-more")

    assert parsed is not None
    assert parsed.header == VALID[:-2] + "03"


def test_a_child_stays_in_the_trace_with_a_span_of_its_own() -> None:
    child = continued(VALID, random=lambda size: b"\x05" * size)

    assert child.header == f"00-{TRACE}-{'05' * 8}-01"


def test_without_a_parent_a_trace_begins_and_nobody_is_told_to_record_it() -> None:
    span = continued("nonsense", random=lambda size: b"\x07" * size)

    assert span == Traceparent(trace_id="07" * 16, parent_id="07" * 8, flags=0)
    assert not span.is_sampled


def test_random_zeros_still_make_a_valid_header() -> None:
    assert parse(started(random=bytes).header) is not None


def test_the_header_of_a_record_is_carried_to_the_next() -> None:
    incoming = (("correlation_id", b"1"), ("traceparent", VALID.encode()))

    outgoing = with_traceparent((("ce_id", b"2"), ("Traceparent", b"old")), traceparent_of(incoming))

    assert outgoing == (("ce_id", b"2"), ("traceparent", VALID.encode()))


def test_two_headers_that_may_disagree_are_none() -> None:
    assert traceparent_of((("traceparent", VALID.encode()), ("traceparent", VALID.encode()))) is None


def test_headers_without_a_trace_stay_as_they_are() -> None:
    assert with_traceparent([("ce_id", b"2")], None) == (("ce_id", b"2"),)


@given(st.one_of(st.text(), st.binary()))
def test_any_header_at_all_gives_a_valid_child(value: str | bytes) -> None:
    assert parse(continued(value).header) is not None
