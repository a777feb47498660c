"""The JSON in the answer of a language model: every outermost value, and a mark where one is broken."""

import re
from collections.abc import Iterator
from typing import Final

from domain.errors import UnreadableAnswerError
from domain.lenient_json import BrokenJsonError, read_json

MAX_ANSWER_CHARS: Final = 400_000

_THOUGHTS: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPENING: Final = re.compile(r"[{\[]")
_LOOKS_LIKE_JSON: Final = re.compile(r"[{\[]\s*(?:[\"'\u201c{\[\]}]|$)|\{\s*[A-Za-z_]\w*\s*:")
_MAX_STARTS: Final = 200


class Broken:
    """Stands for JSON that begins and cannot be read."""


def outermost_values(text: str) -> Iterator[object]:
    """Yield each outermost object and list of ``text``, and ``Broken`` for each that cannot be read.

    What a model thought aloud before its answer is left out.

    Raises:
        UnreadableAnswerError: ``text`` is too long to be an answer.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise UnreadableAnswerError("the answer is too long to be one")
    text = _THOUGHTS.sub(" ", text)
    at = 0
    for _ in range(_MAX_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        try:
            value, at = read_json(text, opening.start())
        except BrokenJsonError:
            at = opening.end()
            yield from _marked(text, opening.start())
        else:
            yield value
    yield Broken()


def _marked(text: str, start: int) -> Iterator[Broken]:
    """Yield a mark unless the bracket at ``start`` belongs to prose."""
    if _LOOKS_LIKE_JSON.match(text, start):
        yield Broken()
