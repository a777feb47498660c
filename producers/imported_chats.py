"""Chats of other programs as conversations of ours (docs/architecture/importing.md)."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from uuid import UUID, uuid5

import orjson

from domain.errors import InvalidInputError
from producers.chat_formats.chats import PARTICIPANT, USER, Chat, ChatMessage, Reading
from producers.client_messages import UserId, user_fields

_NAMESPACE: Final = UUID("5f0c7f0e-9a0d-5b5c-9a53-6f4c8e2d7b11")
_NAMING_MESSAGES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose chats they are.

    ``speaker`` is the user's name in chats of several people; ``zone`` is for times that say none.
    """

    tenant_id: str
    user: UserId
    avatar_id: UUID | None = None
    speaker: str | None = None
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOfChats:
    """One file as it was read; ``written_at`` stands in for the end of a chat that says no time."""

    name: str
    reading: Reading
    written_at: datetime


def lines_of(files: Iterable[FileOfChats], owner: Owner) -> list[bytes]:
    """Return a ``ConversationEnded`` for each chat with words, of all files in the order of their ends.

    The session's id comes from the owner and the chat: a file that is read again is the same session, and a
    longer export of it too.

    Raises:
        InvalidInputError: a chat of several people, and none of them is the user.
    """
    found: list[tuple[datetime, bytes]] = []
    for one in files:
        _note_sides(one, owner)
        for chat in one.reading.chats:
            said = [message for message in chat.messages if message.text.strip()]
            if not said:
                one.reading.skipped["empty conversation"] += 1
                continue
            ended_at = _end(chat, owner) or one.written_at
            if ended_at is one.written_at:
                one.reading.assumed.append("no times: the file's own is taken")
            found.append((ended_at, orjson.dumps(_conversation(chat, said, owner, ended_at))))
        one.reading.assumed[:] = dict.fromkeys(one.reading.assumed)
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def _note_sides(one: FileOfChats, owner: Owner) -> None:
    speakers = one.reading.speakers
    roles = {message.role for chat in one.reading.chats for message in chat.messages}
    if speakers and owner.speaker not in speakers and USER not in roles:
        names = ", ".join(f"{name} ({count})" for name, count in speakers.items())
        raise InvalidInputError(
            f"{one.name}: several people speak: {names}; --user-speaker says which of them is the user",
            field="--user-speaker",
        )
    times = [message.sent_at for chat in one.reading.chats for message in chat.messages]
    if any(time is not None and time.tzinfo is None for time in times):
        one.reading.assumed.append(f"times are in {owner.zone}; --timezone says otherwise")


def _conversation(
    chat: Chat, said: Sequence[ChatMessage], owner: Owner, ended_at: datetime
) -> dict[str, Any]:
    return {
        "tenant_id": owner.tenant_id,
        **user_fields(owner.user),
        **({"avatar_id": str(owner.avatar_id)} if owner.avatar_id is not None else {}),
        "session_id": str(_session_id(chat, said, owner)),
        "ended_at": ended_at.isoformat(),
        "timezone": str(owner.zone) if owner.zone is not UTC else None,
        "messages": [_message(message, owner) for message in said],
    }


def _message(message: ChatMessage, owner: Owner) -> dict[str, Any]:
    is_the_user = message.role == PARTICIPANT and message.speaker == owner.speaker
    sent_at = _aware(message.sent_at, owner)
    fields = {
        "message_id": message.message_id,
        "role": USER if is_the_user else message.role,
        "content": message.text,
        "name": message.speaker,
        "sent_at": sent_at.isoformat() if sent_at is not None else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _session_id(chat: Chat, said: Sequence[ChatMessage], owner: Owner) -> UUID:
    """Name the session by the chat's own id, else by how it begins, as a longer export does too."""
    whose = f"{owner.tenant_id}\x1f{owner.user}\x1f{owner.avatar_id or ''}"
    return uuid5(_NAMESPACE, f"{whose}\x1f{chat.chat_id or _beginning(said)}")


def _beginning(said: Sequence[ChatMessage]) -> str:
    digest = hashlib.sha256()
    for message in said[:_NAMING_MESSAGES]:
        parts = (message.role, message.speaker, message.text, str(message.sent_at))
        digest.update(orjson.dumps(parts))
    return digest.hexdigest()


def _end(chat: Chat, owner: Owner) -> datetime | None:
    """Return the time of the last message, else the chat's own end."""
    times = [at for message in chat.messages if (at := _aware(message.sent_at, owner)) is not None]
    return max(times) if times else _aware(chat.ended_at, owner)


def _aware(time: datetime | None, owner: Owner) -> datetime | None:
    return time.replace(tzinfo=owner.zone) if time is not None and time.tzinfo is None else time
