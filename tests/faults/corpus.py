"""The records of one round: sessions of many users interleaved, some broken, some twice."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from tests.support.publishing import Outgoing

_SESSIONS: Final = 60
_USERS: Final = 12
_START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_SAID: Final = (
    "I live in {city}.",
    "My name is {name}.",
    "I work as a {job}.",
    "I like {thing}.",
    "I can't stand {thing}.",
    "I no longer live in {city}.",
    "My password is hunter{number}secret.",
    "What is the capital of {city}?",
)
_WORDS: Final = {
    "city": ("Porto", "Leeds", "Turin", "Ghent", "Bergen"),
    "name": ("Nadia", "Tom", "Ines"),
    "job": ("nurse", "welder", "baker"),
    "thing": ("coffee", "jazz", "long walks", "olives"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What is sent in one round; values without a topic yet."""

    records: tuple[tuple[bytes, bytes], ...]
    sessions: frozenset[UUID]
    broken: int

    def on(self, topic: str) -> Sequence[Outgoing]:
        """Return the records for ``topic``."""
        return [Outgoing(topic=topic, key=key, value=value) for key, value in self.records]


def corpus_of(chance: random.Random) -> Corpus:
    """Make a corpus; the same chance makes the same."""
    users = [UUID(int=chance.getrandbits(128), version=4) for _ in range(_USERS)]
    records: list[tuple[bytes, bytes]] = []
    sessions: set[UUID] = set()
    broken = 0
    for number in range(_SESSIONS):
        user = chance.choice(users)
        key = f"default:{user}".encode()
        if chance.random() < 0.05:
            records.append((key, f"{{poison {number}".encode()))
            broken += 1
            continue
        body = _session(chance, user, number)
        sessions.add(UUID(body["session_id"]))
        records += [(key, json.dumps(body).encode())] * (2 if chance.random() < 0.1 else 1)
    return Corpus(records=tuple(records), sessions=frozenset(sessions), broken=broken)


def _session(chance: random.Random, user: UUID, number: int) -> dict[str, Any]:
    # Days come in any order, and several sessions may share one.
    start = _START + timedelta(days=chance.randrange(40), minutes=number)
    said = [_sentence(chance, number) for _ in range(chance.randint(1, 4))]
    return {
        "session_id": str(UUID(int=chance.getrandbits(128), version=4)),
        "user_id": str(user),
        "ended_at": (start + timedelta(hours=1)).isoformat(),
        "messages": [
            {"role": "user", "content": text, "sent_at": (start + timedelta(minutes=place)).isoformat()}
            for place, text in enumerate(said)
        ],
    }


def _sentence(chance: random.Random, number: int) -> str:
    words = {name: chance.choice(choices) for name, choices in _WORDS.items()}
    return chance.choice(_SAID).format(number=number, **words)
