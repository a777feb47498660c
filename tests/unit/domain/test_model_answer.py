"""What models really send back is read, or is a failure; it is never "nothing to remember" by accident."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UnreadableAnswerError
from domain.model_answer import confidence_of, importance_of, read_answer

TEA = {
    "category": "preference",
    "fact_key": "likes",
    "fact_value": "green tea",
    "content": "The user likes green tea.",
    "importance": 6,
    "confidence": 0.9,
    "memory_type": "long",
    "source_message_ids": ["m1"],
    "source_excerpt": "I like green tea",
    "reasoning": "said so",
}
CAT = {**TEA, "fact_key": "pet", "fact_value": "a cat called Mia"}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
WHOLE = json.dumps({"memories": [TEA, CAT], "nothing_to_extract": False, "extraction_notes": "ok"})


def values(text: str) -> list[str]:
    return [memory.value for memory in read_answer(text).memories]


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"```json\n{WHOLE}",
        f"Sure! Here is what I found [in brief]:\n\n{WHOLE}\n\nLet me know if {{you}} need more.",
        f'<think>The user says {{a lot}}. Maybe {{"memories": []}}?</think>{WHOLE}',
        f'First I plan {{"memories": [...]}}, then I write:\n{WHOLE}',
        WHOLE.replace("]}", "],}").replace('"ok"}', '"ok",}'),
        WHOLE.replace("'", "").replace('"', "'"),
        WHOLE.replace('"ok"', '"o\x01\tk"'),
        WHOLE.replace("false", "False"),
        WHOLE.replace("0.9", '"0.9"').replace(": 6", ': "6/10"'),
        json.dumps([TEA, CAT]),
        json.dumps({"memories": [TEA, CAT]}),
        json.dumps({"result": {"memories": [TEA, CAT], "nothing_to_extract": False}}),
        f"{json.dumps(TEA)}\n{json.dumps(CAT)}",
        WHOLE.replace('"memories"', "memories"),
        WHOLE.replace('"said so"', "null (perhaps the user meant it)"),
    ],
    ids=[
        "plain", "fence", "open fence", "chatty", "deliberation", "a draft before",
        "trailing commas", "single quotes",
        "control characters", "python literals", "numbers as strings", "a list instead of an object",
        "without the flag", "wrapped once more", "one object a line", "bare keys", "a remark behind null",
    ],
)  # fmt: skip
def test_what_models_send_is_read(text: str) -> None:
    assert values(text) == ["green tea", "a cat called Mia"]


def test_one_object_in_the_place_of_the_list_is_a_list_of_one() -> None:
    assert values(json.dumps({"memories": TEA, "nothing_to_extract": False})) == ["green tea"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "I am sorry, I cannot help with that.",
        "{}",
        "[]",
        "null",
        '{"memories": []}',
        '{"memories": [], "nothing_to_extract": false}',
        '{"memories": null, "nothing_to_extract": "maybe"}',
        '{"error": {"message": "overloaded"}}',
        WHOLE[:-1],
        WHOLE[:-40],
        WHOLE[: len(WHOLE) // 2],
        json.dumps([TEA, CAT])[:-2],
        '{"memories": [{"fact_key": "likes"}], "nothing_to_extract": false}',
        '{"memories": ["likes tea"], "nothing_to_extract": false}',
        '{"memories": [{"fact_key": "likes", "fact_value": null}], "nothing_to_extract": true}',
        "[" * 50_000,
        "{" * 50_000,
        "x" * 500_000,
    ],
)
def test_an_answer_that_cannot_be_read_is_a_failure(text: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        read_answer(text)


def test_an_answer_cut_anywhere_is_never_taken_for_a_whole_one() -> None:
    for end in range(len(WHOLE)):
        with pytest.raises(UnreadableAnswerError):
            read_answer(WHOLE[:end])


@pytest.mark.parametrize("said", [True, "true", "True"])
def test_only_the_answers_own_word_means_nothing_to_remember(said: object) -> None:
    assert read_answer(json.dumps({"memories": [], "nothing_to_extract": said})).memories == ()
    assert read_answer(json.dumps({"nothing_to_extract": said})).memories == ()


def test_memories_outweigh_the_flag_that_there_is_none() -> None:
    assert values(json.dumps({"memories": [TEA], "nothing_to_extract": True})) == ["green tea"]


def test_deliberation_of_four_kilobytes_in_a_value_is_no_value() -> None:
    odd = {**CAT, "fact_value": "null (perhaps the user meant " + "something else " * 280 + ")"}

    assert values(json.dumps({"memories": [TEA, odd], "nothing_to_extract": False})) == ["green tea"]


def test_a_stance_that_nobody_knows_is_not_taken_for_a_statement() -> None:
    odd = {**CAT, "stance": "refutes"}

    assert values(json.dumps({"memories": [TEA, odd], "nothing_to_extract": False})) == ["green tea"]


def test_text_that_no_database_takes_is_cleaned() -> None:
    raw = WHOLE.replace("green tea", "green\\u0000 \\ud800tea\\n")

    value = values(raw)[0]

    assert "\x00" not in value
    value.encode()


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (0.7, 0.7), (1, 1.0), (100, 1.0), (1e15, 1.0), (10**400, 1.0), (-3, 0.0), ("0.8", 0.8), ("85%", 0.85),
        (math.nan, 0.5), (math.inf, 1.0), (-math.inf, 0.0), (None, 0.5), ("high", 0.5), (True,
        0.5), ([], 0.5),
        ("nan", 0.5), ("1e999", 1.0),
    ],
)  # fmt: skip
def test_confidence_stays_between_0_and_1(said: object, means: float) -> None:
    assert confidence_of(said) == means


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (7, 7.0),
        (0.8, 8.0),
        (100, 10.0),
        (0, 1.0),
        (-1, 1.0),
        ("9/10", 9.0),
        (None, 5.0),
        (math.nan, 5.0),
        (1, 1.0),
    ],
)
def test_importance_stays_between_1_and_10(said: object, means: float) -> None:
    assert importance_of(said) == means


@given(st.text(max_size=300))
def test_arbitrary_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    with suppress(UnreadableAnswerError):
        assert read_answer(text).memories


@given(st.text(alphabet="{}[]\",:'\\ntrue0.9 memoriesfact_keyvalue\n", max_size=200))
def test_arbitrary_brackets_are_read_or_refused_and_nothing_else(text: str) -> None:
    with suppress(UnreadableAnswerError):
        assert read_answer('{"memories": [' + text).memories


@given(ANYTHING)
def test_fields_of_any_kind_do_no_harm(odd: object) -> None:
    item = {
        **TEA,
        "confidence": odd,
        "importance": odd,
        "source_message_ids": odd,
        "content": odd,
        "corrects": odd,
    }

    memory = read_answer(json.dumps({"memories": [item]})).memories[0]

    assert 0 <= memory.confidence <= 1
    assert 1 <= memory.importance <= 10
