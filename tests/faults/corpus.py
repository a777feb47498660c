"""What is played in one round: sessions of many users interleaved, some broken, some failing, some twice."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal
from uuid import UUID

from schemas.topics import Topics
from tests.faults.phrases import sentence
from tests.support.publishing import Outgoing

TENANTS: Final[Mapping[str, str]] = {
    "acme": "enterprise",
    "birch": "growth",
    "cedar": "starter",
    "default": "free",
}
JOB_ATTEMPTS: Final = 5
"""One more than the most failures of a session that may not die."""

POISON: Final = b"{poison"

_USERS: Final = 40
_START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_DAYS: Final = 60
_LATEST_COPY: Final = 40
_FILLER: Final = "By the way, the weather has been changing all week and nobody knows what comes next. " * 5

Door = Literal["ended", "replay"]


class Fate(StrEnum):
    """What the model does with a session."""

    GOOD = "good"
    UNREADABLE = "unreadable"
    BUSY = "busy"
    HOPELESS = "hopeless"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session; ``failures`` is how many attempts the model spoils."""

    number: int
    session_id: UUID
    user_id: UUID
    tenant_id: str
    body: Mapping[str, Any]
    fate: Fate = Fate.GOOD
    failures: int = 0

    @property
    def dies(self) -> bool:
        return self.fate in (Fate.HOPELESS, Fate.REFUSED)

    @property
    def scope_key(self) -> bytes:
        """The key of everything that is about the user."""
        return f"{self.tenant_id}:{self.user_id}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A record, and the door that it comes through."""

    door: Door
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What is sent in one round, and what each session is."""

    sendings: tuple[Sending, ...]
    sessions: Mapping[UUID, Session]

    @property
    def good(self) -> frozenset[UUID]:
        """The sessions that end as memory, however often they fail before."""
        return frozenset(one.session_id for one in self.sessions.values() if not one.dies)

    @property
    def dying(self) -> Mapping[UUID, Session]:
        """The sessions that end as a dead letter."""
        return {one.session_id: one for one in self.sessions.values() if one.dies}

    def records(self, topics: Topics) -> list[Outgoing]:
        """Return what is sent, in its order."""
        doors = {"ended": topics.ended, "replay": topics.replay}
        return [Outgoing(topic=doors[one.door], key=one.key, value=one.value) for one in self.sendings]

    def undisturbed(self, topics: Topics) -> list[Outgoing]:
        """Return every session that ends as memory, once each."""
        return [
            Outgoing(topic=topics.ended, key=one.scope_key, value=json.dumps(one.body).encode())
            for one in self.sessions.values()
            if not one.dies
        ]


def corpus_of(number: int, *, sessions: int) -> Corpus:
    """Make the corpus of ``number``; the same number makes the same."""
    chance = random.Random(f"corpus {number}")  # noqa: S311 - a round is to be repeatable
    users = [
        (chance.choice(sorted(TENANTS)), UUID(int=chance.getrandbits(128), version=4)) for _ in range(_USERS)
    ]
    made = [_session(chance, *chance.choice(users), place) for place in range(sessions)]
    return Corpus(sendings=tuple(_interleaved(chance, made)), sessions={one.session_id: one for one in made})


def _session(chance: random.Random, tenant_id: str, user_id: UUID, number: int) -> Session:
    # Days come in any order, so that what was said last often arrives first.
    start = _START + timedelta(days=chance.randrange(_DAYS), minutes=number)
    said = [f"Hello, it is about file QX-{number}. {sentence(chance)}"]
    said += [f"File QX-{number}: {sentence(chance)}" for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.15:
        # Read in several windows, each with a call of the model and a checkpoint.
        said = [f"{text} {_FILLER}" for text in said]
    fate, failures = _fate(chance)
    session_id = UUID(int=chance.getrandbits(128), version=4)
    messages = [
        {
            "message_id": f"m{place}",
            "role": "user",
            "content": text,
            "sent_at": (start + timedelta(seconds=place)).isoformat(),
        }
        for place, text in enumerate(said)
    ]
    return Session(
        number=number,
        session_id=session_id,
        user_id=user_id,
        tenant_id=tenant_id,
        fate=fate,
        failures=failures,
        body={
            "session_id": str(session_id),
            "tenant_id": tenant_id,
            "user_id": str(user_id),
            "ended_at": (start + timedelta(hours=1)).isoformat(),
            "messages": messages,
        },
    )


def _fate(chance: random.Random) -> tuple[Fate, int]:
    found = chance.random()
    if found < 0.03:
        return (Fate.REFUSED, 0) if chance.random() < 0.5 else (Fate.HOPELESS, 0)
    if found < 0.05:
        return Fate.BUSY, 1
    if found < 0.13:
        return Fate.UNREADABLE, chance.randint(1, JOB_ATTEMPTS - 1)
    return Fate.GOOD, 0


def _interleaved(chance: random.Random, sessions: Sequence[Session]) -> list[Sending]:
    """Give each session its moments: now, a second time later, beside it in the lane of replays."""
    placed = [moment for one in sessions for moment in _moments(chance, one)]
    return [sending for _, sending in sorted(placed, key=lambda moment: moment[0])]


def _moments(chance: random.Random, one: Session) -> Iterator[tuple[float, Sending]]:
    value = json.dumps(one.body).encode()

    def sending(door: Door) -> Sending:
        return Sending(door=door, key=one.scope_key, value=value)

    def later() -> float:
        return one.number + chance.uniform(0.0, _LATEST_COPY)

    found = chance.random()
    yield float(one.number), sending("replay" if found < 0.05 else "ended")
    if found < 0.10:
        yield later(), sending("ended")
    elif found < 0.20:
        # The replay of a session may well come before the session.
        yield max(later() - _LATEST_COPY / 2, 0.0), sending("replay")
    if chance.random() < 0.10:
        yield later(), sending("ended")
    if chance.random() < 0.03:
        broken = POISON + f" {one.number}".encode()
        yield (
            one.number + 0.5,
            Sending(door=chance.choice(("ended", "replay")), key=one.scope_key, value=broken),
        )
