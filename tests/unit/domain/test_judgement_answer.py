"""What a judge answered, read: what is unclear judges nothing, what cannot be read is an error."""

import json

import pytest

from domain.errors import UnreadableAnswerError
from domain.judgement_answer import is_borne_out, read_judgements
from domain.memory.assertions import Claim, Compatible, Merge, Rivals, Same, Verdict
from domain.memory.questions import Question
from domain.memory.slots import slot_of

LIKES = slot_of("likes")
ASKED = [
    Question(Claim(LIKES, "black coffee"), Claim(LIKES, "espresso")),
    Question(Claim(LIKES, "jazz"), Claim(LIKES, "jazz concerts")),
]


def answer(*items: dict[str, object]) -> str:
    return json.dumps({"judgements": items})


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({"n": 1, "verdict": "same", "text": None}, Same()),
        ({"n": "1", "verdict": " SAME "}, Same()),
        ({"n": 1, "verdict": "rivals"}, Rivals()),
        ({"n": 1, "verdict": "compatible"}, Compatible()),
        (
            {"n": 1, "verdict": "merge", "text": "espresso and black coffee"},
            Merge("espresso and black coffee"),
        ),
    ],
)
def test_each_verdict_is_read(said: dict[str, object], verdict: Verdict) -> None:
    assert read_judgements(f"Sure:\n```json\n{answer(said)}\n```", ASKED) == {ASKED[0]: verdict}


@pytest.mark.parametrize(
    "said",
    [
        {"n": 1, "verdict": "merge", "text": ""},
        {"n": 1, "verdict": "merge", "text": None},
        {"n": 1, "verdict": "merge", "text": "coffee from Ethiopia and espresso"},
        {"n": 1, "verdict": "merge", "text": "espresso"},
        {"n": 1, "verdict": "merge", "text": "no espresso and no black coffee"},
        {"n": 1, "verdict": "merge", "text": "2 black coffees, espresso"},
        {"n": 1, "verdict": "probably"},
        {"n": 3, "verdict": "same"},
        {"n": 0, "verdict": "same"},
        {"n": True, "verdict": "same"},
    ],
)
def test_what_is_unclear_or_not_borne_out_judges_nothing(said: dict[str, object]) -> None:
    read = read_judgements(answer(said, {"n": 2, "verdict": "compatible"}), ASKED)

    assert read == {ASKED[1]: Compatible()}


def test_two_answers_to_one_question_are_none() -> None:
    read = read_judgements(
        answer({"n": 1, "verdict": "same"}, {"n": 1, "verdict": "rivals"}, {"n": 2, "verdict": "same"}), ASKED
    )

    assert read == {ASKED[1]: Same()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "They are the same.",
        "{}",
        '{"judgements": []}',
        answer({"n": 1, "verdict": "same"})[:-6],
        "[1, 2]",
    ],
)
def test_an_answer_without_a_judgement_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        read_judgements(text, ASKED)


def test_a_merged_text_keeps_the_numbers_of_both_sides() -> None:
    left, right = "leads tern, 4 people", "leads tern in porto"

    assert is_borne_out("leads Tern in Porto, 4 people", left, right)
    assert not is_borne_out("leads Tern in Porto, 5 people", left, right)
    assert not is_borne_out("leads Tern in Porto", left, right)
