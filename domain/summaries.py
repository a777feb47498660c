"""What a long conversation was about, in sentences of its own: what is remembered of it, and what was said.

Nothing is written that the checks keep from becoming a fact: a summary goes into prompts, too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.instructions import is_instruction
from domain.secrets import holds_secret
from domain.special_categories import special_category

LONGEST_SUMMARY: Final = 1_000

_SENTENCE: Final = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+[.!?\u3002\uff01\uff1f]*")
_QUESTION: Final = ("?", "\uff1f")
_LEAST_CHARS: Final = 8
_LONGEST_SENTENCE: Final = 240
_MOST_FACTS: Final = 8
_MOST_SENTENCES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A conversation as a summary is made of it: what the user said, and the facts that rest on it."""

    said: tuple[str, ...]
    facts: tuple[str, ...]
    message_count: int
    ended_at: datetime
    summarised: int = 0
    """How many messages it had when it was last summed up; 0 where it never was."""


def summary_of(told: Told) -> str:
    """Return the facts of a conversation, how it began and its longest sentences; perhaps nothing."""
    sentences = [one for text in told.said for one in _sentences(text)]
    longest = sorted(sentences[1:], key=len, reverse=True)[: _MOST_SENTENCES - 1]
    chosen = [*sentences[:1], *(one for one in sentences[1:] if one in longest)]
    lines = [*told.facts[:_MOST_FACTS], *(f'"{one}"' for one in chosen)]
    return _within_budget(dict.fromkeys(lines))


def _sentences(text: str) -> Iterable[str]:
    for found in _SENTENCE.findall(text):
        sentence = " ".join(found.split())
        if _LEAST_CHARS <= len(sentence) <= _LONGEST_SENTENCE and _may_be_shown(sentence):
            yield sentence


def _may_be_shown(sentence: str) -> bool:
    return not (
        sentence.endswith(_QUESTION)
        or holds_secret(sentence)
        or is_instruction("", sentence)
        or special_category("", None, sentence) is not None
    )


def _within_budget(lines: Iterable[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(kept) + len(line) > LONGEST_SUMMARY:
            break
        kept.append(line)
    return "\n".join(kept)


def is_due(told: Told, *, every: int) -> bool:
    """Say whether ``every`` messages came since the conversation was last summed up."""
    return told.message_count - told.summarised >= every
