"""The tolerant reader agrees with JSON where there is JSON, and never completes what is missing."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.lenient_json import BrokenJsonError, CutJsonError, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def tolerantly(text: str) -> object:
    """Read ``text`` with something in front that only the tolerant reader takes."""
    value, end = read_json(f"[ , {text}]")
    assert end == len(text) + 5
    assert isinstance(value, list)
    return value[0]


@given(VALUES)
def test_json_is_read_as_what_it_is(value: object) -> None:
    text = json.dumps(value)

    assert read_json(text) == (value, len(text))
    assert tolerantly(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'it's'}", {"a": "it's"}),
        ("{\u201ca\u201d: \u2018b\u2019}", {"a": "b"}),
        ('{"a": "he said "hi" to me"}', {"a": 'he said "hi" to me'}),
        ("{a: 1, b-c: .5,}", {"a": 1, "b-c": 0.5}),
        ("[1, 2,, 3,]", [1, 2, 3]),
        ("[1 // one\n, 2]", [1, 2]),
        ("[True, None, -Infinity]", [True, None, -math.inf]),
        ("[null (nobody said), 0.9 (rather sure)]", [None, 0.9]),
        ('["a\x01\nb", "\\x"]', ["a\x01\nb", "x"]),
        ('["\\u00e9\\ud83d\\ude00 \\ud83d \\ude00",]', ["é😀 \ufffd \ufffd"]),
        ("[" + "9" * 250 + ",]", [int("9" * 250)]),
    ],
)
def test_what_models_write_is_read(text: str, value: object) -> None:
    assert read_json(text)[0] == value


@pytest.mark.parametrize(
    "text",
    ["{", "[", '{"a"', '{"a": ', '{"a": "b', "[1", "[null (no", "['a\\", "{'a': [1, {'b': 2}", "", "  "],
)
def test_what_is_cut_is_told_from_what_is_broken(text: str) -> None:
    with pytest.raises(CutJsonError):
        read_json(text)


@pytest.mark.parametrize(
    "text",
    ['{"a" "b"}', "{1: 2}", "[sorry]", '["\\u00g0",]', "[" * 100, "[" + "9" * 400 + ",]", "}", "{'a': (1)}"],
)
def test_what_is_broken_is_not_mended(text: str) -> None:
    with pytest.raises(BrokenJsonError):
        read_json(text)
