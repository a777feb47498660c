"""What users say in a round, and what a model makes of each sentence: the same in any session and window."""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrase:
    """A sentence with one gap, and the statement that it is."""

    text: str
    key: str
    category: str
    words: tuple[str, ...]
    stance: str = "holds"
    confidence: float = 0.95

    @property
    def pattern(self) -> re.Pattern[str]:
        before, after = self.text.split("{}")
        return re.compile(
            f"(?<![^ ]){re.escape(before)}({'|'.join(map(re.escape, self.words))}){re.escape(after)}"
        )

    def memory(self, value: str, message_id: str) -> dict[str, Any]:
        said = self.text.format(value)
        return {
            "category": self.category,
            "fact_key": self.key,
            "fact_value": value,
            "content": f"The user says: {said}",
            "importance": 7,
            "confidence": self.confidence,
            "memory_type": "long",
            "stance": self.stance,
            "expires_at": None,
            "valid_from": None,
            "source_message_ids": [message_id],
            "source_excerpt": said,
            "reasoning": "said in plain words",
        }


_CITIES: Final = ("Lisbon", "Porto", "Gdansk", "Turin", "Leeds", "Bergen")
_JOBS: Final = ("nurse", "welder", "librarian", "pilot", "baker")
_THINGS: Final = ("coffee", "jazz", "olives", "chess", "sailing")
_PHRASES: Final = (
    _Phrase(text="I live in {}.", key="home_city", category="personal_info", words=_CITIES),
    _Phrase(
        text="I no longer live in {}.",
        key="home_city",
        category="personal_info",
        words=_CITIES,
        stance="denies",
    ),
    _Phrase(text="I work as a {}.", key="job_title", category="work", words=_JOBS),
    _Phrase(text="I like {}.", key="likes", category="preference", words=_THINGS),
    _Phrase(text="I might like {} a bit.", key="likes", category="preference", words=_THINGS, confidence=0.5),
    _Phrase(
        text="I do not like {} any more.", key="likes", category="preference", words=_THINGS, stance="denies"
    ),
    _Phrase(text="Please call me {}.", key="nickname", category="identity", words=("Nadia", "Tom", "Ines")),
)
_COMPILED: Final = tuple((phrase, phrase.pattern) for phrase in _PHRASES)


def sentence(chance: random.Random) -> str:
    """Return something that a user says."""
    phrase = chance.choice(_PHRASES)
    return phrase.text.format(chance.choice(phrase.words))


def memories_in(messages: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield what a model finds in ``messages``, by their ids."""
    for message_id, text in messages.items():
        for phrase, pattern in _COMPILED:
            for found in pattern.finditer(text):
                yield phrase.memory(found.group(1), message_id)
