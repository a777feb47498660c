"""Claude's export: flat messages with blocks; pasted documents are not what somebody said."""

import re
from typing import Final

from producers.chat_formats.chats import ASSISTANT, USER, Chat, ChatMessage, Reading
from producers.chat_formats.values import Table, items, moment, table, text, texts_of

NAME: Final = "claude"

_ROLES: Final = {"human": USER, "assistant": ASSISTANT}
_TEXT: Final = frozenset({"text"})
_ARTIFACT: Final = re.compile(r"<antArtifact\b[^>]*>.*?(?:</antArtifact>|\Z)", re.DOTALL)


def is_claude(value: object) -> bool:
    """Say whether ``value`` is a conversation of this export, or a list of them."""
    return "chat_messages" in table(value) or any("chat_messages" in table(one) for one in items(value))


def read_claude(value: object) -> Reading:
    """Read each conversation, along the branch that it ends with."""
    reading = Reading(format=NAME)
    for found in [value] if "chat_messages" in table(value) else items(value):
        conversation = table(found)
        messages = [table(one) for one in items(conversation.get("chat_messages"))]
        branch = _branch(messages, text(conversation.get("current_leaf_message_uuid")))
        if len(branch) < len(messages):
            reading.skipped["other branch"] += len(messages) - len(branch)
        reading.chats.append(
            Chat(
                chat_id=text(conversation.get("uuid")),
                messages=tuple(_message(one, reading) for one in branch),
                ended_at=moment(conversation.get("updated_at") or conversation.get("created_at")),
            )
        )
    return reading


def _branch(messages: list[Table], leaf: str) -> list[Table]:
    by_id = {text(message.get("uuid")): message for message in messages}
    if leaf not in by_id:
        return messages
    found: list[Table] = []
    while leaf in by_id:
        message = by_id.pop(leaf)
        found.append(message)
        leaf = text(message.get("parent_message_uuid"))
    return found[::-1]


def _message(message: Table, reading: Reading) -> ChatMessage:
    for kind in ("attachments", "files"):
        if items(message.get(kind)):
            reading.skipped[kind] += len(items(message.get(kind)))
    blocks = "\n".join(texts_of(message.get("content"), kinds=_TEXT))
    sender = text(message.get("sender"))
    return ChatMessage(
        role=_ROLES.get(sender, sender or "unknown"),
        text=_ARTIFACT.sub("", blocks or text(message.get("text"))).strip(),
        message_id=text(message.get("uuid")) or None,
        sent_at=moment(message.get("created_at")),
    )
