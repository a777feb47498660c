"""The 150 English conversations of MemoryBank, as an engine would tell of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

_FILE: Final = Path("data/memorybank/memory_bank_en.json")
_START: Final = "T10:00:00+00:00"
_TURN: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One conversation: what one person and the assistant said on one day."""

    name: str
    date: str
    messages: tuple[Mapping[str, Any], ...]

    @property
    def user_id(self) -> UUID:
        """Whose conversation it is."""
        return user_of(self.name)

    @property
    def session_id(self) -> UUID:
        """The same for every playing."""
        return uuid5(NAMESPACE_URL, f"memorybank/{self.name}/{self.date}")

    @property
    def ended_at(self) -> datetime:
        """The moment after its last message."""
        return datetime.fromisoformat(f"{self.date}{_START}") + len(self.messages) * _TURN

    def ended(self) -> dict[str, Any]:
        """Return the conversation as a value for ``conversation.ended.v1``."""
        return {
            "session_id": str(self.session_id),
            "user_id": str(self.user_id),
            "ended_at": self.ended_at.isoformat(),
            "messages": list(self.messages),
        }


def user_of(name: str) -> UUID:
    """Return the id of the person called ``name``."""
    return uuid5(NAMESPACE_URL, f"memorybank/{name}")


def days_of(corpora: Path) -> list[Day]:
    """Read the conversations, ordered by day and then by person."""
    people = json.loads((corpora / _FILE).read_text())
    days = [
        Day(name=name.strip(), date=date, messages=_messages(date, turns))
        for name, person in people.items()
        for date, turns in person["history"].items()
    ]
    return sorted(days, key=lambda day: (day.date, day.name))


def some(days: Sequence[Day], *, people: int, dates: int) -> list[Day]:
    """Return the conversations of the first ``people`` on the first ``dates``."""
    names = sorted({day.name for day in days})[:people]
    first = sorted({day.date for day in days})[:dates]
    return [day for day in days if day.name in names and day.date in first]


def _messages(date: str, turns: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, Any], ...]:
    start = datetime.fromisoformat(f"{date}{_START}")
    texts = [said for turn in turns for said in (("user", turn["query"]), ("assistant", turn["response"]))]
    return tuple(
        {
            "message_id": f"m{place}",
            "role": role,
            "content": content,
            "sent_at": (start + place * _TURN).isoformat(),
        }
        for place, (role, content) in enumerate(texts)
    )
