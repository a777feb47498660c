"""Conversations as engines send them."""

from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from schemas.wire import Identifier, Moment, Received

DEFAULT_TENANT: Final = "default"


class Scoped(Received):
    """Whose memory it is; one of ``user_id`` and ``external_user_id`` is needed: no user is the default."""

    tenant_id: Identifier = DEFAULT_TENANT
    user_id: UUID | None = None
    external_user_id: Identifier | None = None
    avatar_id: UUID | None = None

    @model_validator(mode="after")
    def _names_a_user(self) -> "Scoped":
        if self.user_id is None and self.external_user_id is None:
            raise ValueError("expected one of user_id and external_user_id")
        return self


def _text_of(content: object) -> str | None:
    """Join the texts of a message's parts; what has no text is no reason to refuse the session."""
    match content:
        case str():
            return content
        case list():
            texts = [text for part in content if (text := _text_of(part)) is not None]
            return "\n".join(texts) if texts else None
        case {"text": str() as text}:
            return text
        case _:
            return None


Content = Annotated[
    str | None,
    BeforeValidator(_text_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]},
                },
                {"type": "null"},
            ]
        }
    ),
]
"""What was said: a text, or a list of parts of which those with a text are read."""


class Message(Received):
    """One message."""

    message_id: str | int | None = None
    role: str
    content: Content = None
    name: str | None = None
    sent_at: Moment | None = None
    timezone: str | None = None
    metadata: dict[str, Any] | None = None


class Source(Received):
    """What made the conversation, where it was no chat."""

    event_id: str | None = None
    explicit: bool = False
    kind: str | None = None


class ConversationEnded(Scoped):
    """A conversation ended. Its words are in ``messages`` or ``transcript``, or came before, one by one.

    An empty list of messages says that there were none; without the field they came before.
    """

    session_id: UUID
    ended_at: Moment
    started_at: Moment | None = None
    message_count: int | None = Field(default=None, ge=0)
    timezone: str | None = None
    language: str | None = Field(default=None, max_length=35)
    messages: list[Message] | None = None
    transcript: str | None = None
    source: Source | None = None
    metadata: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_one_text(self) -> "ConversationEnded":
        if self.messages is not None and self.transcript is not None:
            raise ValueError("expected messages or transcript, not both")
        return self


class MessagePosted(Scoped):
    """One message of a conversation that may go on; ``position`` counts from 0 within the session."""

    session_id: UUID
    position: int = Field(ge=0, le=2_147_483_647)
    message_id: str | int | None = None
    role: str
    content: Content = None
    name: str | None = None
    sent_at: Moment | None = None
    timezone: str | None = None
    language: str | None = Field(default=None, max_length=35)
    metadata: dict[str, Any] | None = None
