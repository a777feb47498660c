"""A conversation as the service sees it: who spoke, when, and in which order."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

NIL_AVATAR: Final = UUID(int=0)
LIVE: Final = "live"

USER_ROLES: Final = frozenset({"user", "human"})
ASSISTANT_ROLES: Final = frozenset({"assistant", "ai", "bot", "model", "avatar"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; ``sent_at`` has a zone. Roles nobody knows are kept and are not the user's own words."""

    message_id: str
    position: int
    role: str
    content: str
    sent_at: datetime
    name: str | None = None

    @property
    def is_user(self) -> bool:
        """Whether the words are the user's own."""
        return self.role.casefold() in USER_ROLES

    @property
    def is_assistant(self) -> bool:
        """Whether the words are the assistant's."""
        return self.role.casefold() in ASSISTANT_ROLES


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRef:
    """A user as a writer names them: by our UUID, or by an id of the writer's own."""

    user_id: UUID | None = None
    external_user_id: str | None = None

    @property
    def key(self) -> str:
        """The user's part of a scope key."""
        return str(self.user_id) if self.user_id is not None else str(self.external_user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionText:
    """What extraction reads: the messages of one session and what is known about their time and language."""

    session_id: UUID
    ended_at: datetime
    messages: tuple[Message, ...]
    timezone: str | None = None
    language: str | None = None
