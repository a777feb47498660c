"""What every format is read into."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

USER: Final = "user"
ASSISTANT: Final = "assistant"
SYSTEM: Final = "system"
TOOL: Final = "tool"
#: Somebody in a chat of several people, of whom the file cannot say whether it is the user.
PARTICIPANT: Final = "participant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message; one that had no words, but a picture or a call of a tool, has an empty text."""

    role: str
    text: str
    message_id: str | None = None
    speaker: str | None = None
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One conversation; ``chat_id`` is the name that its program gave it, empty where it has none.

    ``ended_at`` is the end by the file's own words; its messages may say more.
    """

    chat_id: str = ""
    messages: tuple[ChatMessage, ...]
    ended_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Reading:
    """What came of a file: its chats, what was left out and why, what could not be read, what was assumed."""

    format: str
    chats: list[Chat] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def message_count(self) -> int:
        """How many messages were read."""
        return sum(len(chat.messages) for chat in self.chats)

    @property
    def speakers(self) -> Mapping[str, int]:
        """Who said how many messages, where the file names people and no sides."""
        return Counter(
            message.speaker or ""
            for chat in self.chats
            for message in chat.messages
            if message.role == PARTICIPANT
        )
