"""ShareGPT and Vicuna: conversations of ``from`` and ``value``."""

import html
import re
from typing import Final

from producers.chat_formats.chats import ASSISTANT, SYSTEM, TOOL, USER, Chat, ChatMessage, Reading
from producers.chat_formats.values import items, table, text

NAME: Final = "sharegpt"

_ROLES: Final = {
    "human": USER, "user": USER, "gpt": ASSISTANT, "chatgpt": ASSISTANT, "assistant": ASSISTANT,
    "bing": ASSISTANT, "bard": ASSISTANT, "system": SYSTEM, "function_call": TOOL, "observation": TOOL,
    "tool": TOOL,
}  # fmt: skip
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")


def is_sharegpt(value: object) -> bool:
    """Say whether ``value`` is a list of conversations whose messages say from whom they are."""
    return any(
        "from" in table(message)
        for one in ([value] if isinstance(value, dict) else items(value))
        for message in items(table(one).get("conversations"))
    )


def read_sharegpt(value: object) -> Reading:
    """Read each conversation; there are no times in this format."""
    reading = Reading(format=NAME)
    for found in [value] if isinstance(value, dict) else items(value):
        conversation = table(found)
        messages = [table(one) for one in items(conversation.get("conversations"))]
        said = [
            ChatMessage(
                role=_ROLES.get(text(one.get("from")), text(one.get("from")) or "unknown"),
                text=html.unescape(_TAG.sub("", text(one.get("value")))),
            )
            for one in messages
        ]
        reading.chats.append(Chat(chat_id=text(conversation.get("id")), messages=tuple(said)))
    return reading
