"""The answer of a judge: from the text that came back to verdicts. What is unclear judges nothing."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from domain.answer_json import Broken, outermost_values
from domain.errors import UnreadableAnswerError
from domain.function_words import FUNCTION_WORDS
from domain.memory.assertions import Compatible, Merge, Rivals, Same, Verdict
from domain.memory.questions import Question
from domain.memory.values import negations, normalise, numbers
from domain.model_answer import plain_text

_WORD: Final = re.compile(r"[^\W_]+")
_LONGEST_VALUE: Final = 200
_SMALL: Final = frozenset[str]().union(*FUNCTION_WORDS.values())
_LISTS: Final = ("judgements", "judgments", "answers", "results")
_PLAIN: Final[Mapping[str, Verdict]] = {"same": Same(), "rivals": Rivals(), "compatible": Compatible()}


def read_judgements(text: str, questions: Sequence[Question]) -> Mapping[Question, Verdict]:
    """Read which verdict each of ``questions``, numbered from 1, was given.

    A number that was not asked, an unknown verdict, two verdicts on one question, and a merge that is empty
    or not borne out by both sides are left out.

    Raises:
        UnreadableAnswerError: no verdict can be read out of ``text`` at all.
    """
    found: dict[int, Verdict | None] = {}
    items = _items(text)
    for item in items:
        number, verdict = _number(item.get("n")), _text(item, "verdict").casefold()
        if number is None or not 1 <= number <= len(questions):
            continue
        read = _verdict(verdict, _text(item, "text"), questions[number - 1])
        found[number] = read if found.setdefault(number, read) == read else None
    if not found:
        raise UnreadableAnswerError("the answer has no judgement that can be read")
    return {questions[number - 1]: verdict for number, verdict in found.items() if verdict is not None}


def is_borne_out(text: str, left: str, right: str) -> bool:
    """Say whether a merged ``text`` says only what ``left`` and ``right`` say, and something of each."""
    said, of_left, of_right = (_content(normalise(one)) for one in (text, left, right))
    if not said or len(text) > _LONGEST_VALUE or not said <= of_left | of_right:
        return False
    if set(numbers(normalise(text))) != set(numbers(left)) | set(numbers(right)):
        return False
    if negations(normalise(text)) != negations(left) | negations(right):
        return False
    return all(not own or said & own for own in (of_left - of_right, of_right - of_left))


def _items(text: str) -> Sequence[Mapping[str, object]]:
    """Return the items of the last whole answer in ``text``; one that is cut is none."""
    found: Sequence[Mapping[str, object]] = ()
    for value in outermost_values(text):
        if isinstance(value, Broken):
            found = ()
        elif items := _listed(value):
            found = items
    return found


def _listed(value: object) -> Sequence[Mapping[str, object]]:
    inner = value
    if isinstance(value, dict):
        inner = next((value[name] for name in _LISTS if name in value), [value])
    items = inner if isinstance(inner, list) else [inner]
    return [item for item in items if isinstance(item, dict) and "verdict" in item]


def _verdict(verdict: str, text: str, asked: Question) -> Verdict | None:
    if verdict == "merge":
        return Merge(text) if is_borne_out(text, asked.left.norm, asked.right.norm) else None
    return _PLAIN.get(verdict)


def _number(said: object) -> int | None:
    if isinstance(said, str) and said.strip().isdecimal():
        return int(said.strip()[:9])
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def _text(item: Mapping[str, object], name: str) -> str:
    return plain_text(item.get(name))


def _content(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text)) - _SMALL
