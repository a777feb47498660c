import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text_cleaning import clean, readable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b", "ab"),
        ("a\ud800b", "ab"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("evil\u202etxt", "eviltxt"),
        ("I\x0bwork\x0chere", "I work here"),
        ("\ufeffhello", "hello"),
    ],
)
def test_what_a_database_rejects_is_taken_out_and_told(text: str, expected: str) -> None:
    cleaned = clean(text)

    assert (cleaned.text, cleaned.changed) == (expected, True)


@pytest.mark.parametrize("text", ["plain", "tab\tand\nline", "Zoë 日本語 👩‍👩‍👧", "a\r\nb"])
def test_ordinary_text_does_not_count_as_cleaned(text: str) -> None:
    assert not clean(text).changed


@given(st.text(alphabet=st.characters(), max_size=100))
def test_cleaned_text_can_be_stored_and_cleaning_again_changes_nothing(text: str) -> None:
    cleaned = clean(text).text

    assert "\x00" not in cleaned
    cleaned.encode("utf-8")
    assert not clean(cleaned).changed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Berlin", "I live in Berlin"),
        ("I\u00a0 live\u2003in  Rome ", "I live in Rome"),
        ("it\u2019s", "it's"),
        ("P\u0430ris", "Paris"),
        ("Москва", "Москва"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_text_is_folded_for_reading(text: str, expected: str) -> None:
    assert readable(text) == expected
