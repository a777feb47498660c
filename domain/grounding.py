"""Whether a candidate's words are in the messages that it cites, and who said them."""

import re
from collections.abc import Iterable
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from domain.candidates import Candidate
from domain.conversation import Message
from domain.memory.values import EVERYTHING, normalise
from domain.secrets import MARK
from domain.text_cleaning import readable
from domain.windows import Window

_WORD: Final = re.compile(r"[^\W_]+")
_GAP: Final = re.compile(rf"{MARK}|\u2026|\.{{3}}")
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_YES: Final = re.compile(
    r"\W*(?:(?:yes|yeah|yep|yup|yea|correct|right|exactly|true|indeed|absolutely|sure|i do|i am|i have|"
    r"that's (?:right|true)|"
    r"ja|genau|stimmt|richtig|oui|exact|exactement|c'est \u00e7a|s\u00ed|si|claro|exacto|correcto|sim|"
    r"isso|certo)\b|"
    r"\u662f|\u5bf9|\u6ca1\u9519|\u597d\u7684|\u306f\u3044|\u305d\u3046|\ub124|\u0434\u0430\b)",
    re.IGNORECASE,
)
# A shorter excerpt is found everywhere and proves nothing.
_LEAST_EXCERPT_WORDS: Final = 2
_LEAST_EXCERPT_CHARS: Final = 8
_MOST_SCATTERED_WORDS: Final = 8
_LEAST_WORD: Final = 3


class Grounding(Enum):
    """Where a candidate's words were found."""

    SAID = auto()
    CONFIRMED = auto()
    SAID_BY_ANOTHER = auto()
    NOWHERE = auto()


def grounding_of(candidate: Candidate, window: Window) -> Grounding:
    """Look for the excerpt or the value of ``candidate`` in the messages of ``window`` that it cites."""
    cited = [message for message in window.messages if message.message_id in candidate.message_ids]
    own = _plain_all(message for message in cited if message.is_user)
    if is_found(candidate, own):
        return Grounding.SAID
    others = [message for message in cited if not message.is_user]
    if not is_found(candidate, _plain_all(others)):
        return Grounding.NOWHERE
    return Grounding.CONFIRMED if _is_confirmed(candidate, window) else Grounding.SAID_BY_ANOTHER


def is_found(candidate: Candidate, text: str) -> bool:
    """Tell whether the excerpt or the value of ``candidate`` is in ``text``, which is in the plain form."""
    return bool(text) and (_holds_excerpt(text, candidate.excerpt) or _holds_value(text, candidate.value))


@lru_cache(maxsize=512)
def plain(text: str) -> str:
    """Return the words of ``text`` in the form in which they are compared, one space between them."""
    return " ".join(_WORD.findall(normalise(readable(text))))


def _plain_all(messages: Iterable[Message]) -> str:
    return " | ".join(plain(message.content) for message in messages)


def _holds_excerpt(text: str, excerpt: str) -> bool:
    """Find the parts of ``excerpt`` in their order; what was masked in it may be anything."""
    parts = [part for part in (plain(part) for part in _GAP.split(excerpt)) if part]
    said = " ".join(parts)
    if len(said) < _LEAST_EXCERPT_CHARS and not (
        _UNSPACED.search(said) or said.count(" ") >= _LEAST_EXCERPT_WORDS
    ):
        return False
    start = 0
    for part in parts:
        place = _find(text, part, start)
        if place < 0:
            return False
        start = place + len(part)
    return bool(parts)


def _holds_value(text: str, value: str) -> bool:
    words = plain(value)
    if not words or value == EVERYTHING:
        return False
    if _find(text, words, 0) >= 0:
        return True
    scattered = words.split()
    has_content = any(len(word) >= _LEAST_WORD or word.isdigit() for word in scattered)
    is_short = 1 < len(scattered) <= _MOST_SCATTERED_WORDS
    return is_short and has_content and all(_find(text, word, 0) >= 0 for word in scattered)


def _find(text: str, words: str, start: int) -> int:
    """Return the place of ``words`` as whole words; scripts without spaces have no whole words."""
    if _UNSPACED.search(words):
        return text.find(words, start)
    return f" {text} ".find(f" {words} ", start)


def _is_confirmed(candidate: Candidate, window: Window) -> bool:
    """Tell whether a cited message of the user says yes to the message right before it."""
    pairs = zip(window.messages, window.messages[1:], strict=False)
    return any(
        after.is_user and not before.is_user and _YES.match(readable(after.content)) is not None
        for before, after in pairs
        if {before.message_id, after.message_id} <= set(candidate.message_ids)
    )
