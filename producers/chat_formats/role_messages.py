"""Messages with a role, as the interfaces of models take them and libraries around them keep them.

OpenAI's chat completions, fine-tuning lines and response items, Anthropic's messages, LangChain's two ways to
write a message, the AI SDK's messages, and plain lines of ``{role, content}``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from producers.chat_formats.chats import (
    ASSISTANT,
    PARTICIPANT,
    SYSTEM,
    TOOL,
    USER,
    Chat,
    ChatMessage,
    Reading,
)
from producers.chat_formats.dates import day_first
from producers.chat_formats.values import Table, items, moment, table, text, texts_of

NAME: Final = "messages"
TABLE_NAME: Final = "message-table"

_ROLES: Final = {
    "user": USER, "human": USER, "humanmessage": USER, "humanmessagechunk": USER,
    "assistant": ASSISTANT, "ai": ASSISTANT, "model": ASSISTANT, "bot": ASSISTANT, "aimessage": ASSISTANT,
    "aimessagechunk": ASSISTANT, "chatbot": ASSISTANT,
    "system": SYSTEM, "developer": SYSTEM, "systemmessage": SYSTEM,
    "tool": TOOL, "function": TOOL, "data": TOOL, "toolmessage": TOOL, "functionmessage": TOOL,
}  # fmt: skip
_TEXT: Final = frozenset({"text", "input_text", "output_text"})
_LISTS: Final = ("messages", "input", "output", "items", "history")
_CONTENT: Final = ("content", "parts", "text", "message", "value")
_TIMES: Final = ("sent_at", "timestamp", "created_at", "createdAt", "create_time", "time", "date", "ts")
_SPEAKERS: Final = ("speaker", "author", "sender", "from", "username")
_NO_MESSAGES: Final = frozenset(
    {"reasoning", "function_call", "function_call_output", "item_reference", "web_search_call"}
)


def is_role_messages(value: object) -> bool:
    """Say whether ``value`` is a message, a list of them, or a table that has one."""
    if isinstance(value, list):
        return any(is_role_messages(one) for one in value)
    fields = table(value)
    return (
        any(isinstance(fields.get(name), list) for name in _LISTS)
        or ("prompt" in fields and "completion" in fields)
        or _is_message(fields)
    )


def read_role_messages(values: Sequence[object], reading: Reading | None = None) -> Reading:
    """Read ``values``, each a whole conversation or one message; single messages are one conversation."""
    reading = reading or Reading(format=NAME)
    single: list[ChatMessage] = []
    for value in values:
        if _is_message(table(value)):
            single += _messages([value], reading)
        elif is_role_messages(value):
            reading.chats.append(_chat(value, reading))
        else:
            reading.skipped["no conversation"] += 1
    if single:
        reading.chats.append(Chat(messages=tuple(single)))
    return reading


def message_of(value: object) -> ChatMessage | None:
    """Read one message; None where ``value`` is none."""
    if not _is_message(table(value)):
        return None
    fields = _unwrapped(table(value))
    speaker = next((text(fields[name]) for name in _SPEAKERS if isinstance(fields.get(name), str)), "")
    role = text(fields.get("role")) or text(fields.get("type"))
    known = _ROLES.get(role.casefold())
    if known is None and not text(fields.get("role")):
        role = PARTICIPANT if speaker else "unknown"
    metadata = table(fields.get("metadata"))
    times = (*(fields.get(name) for name in _TIMES), *(metadata.get(name) for name in _TIMES))
    written = next((time for time in times if time not in (None, "")), None)
    return ChatMessage(
        role=known or role,
        text="\n".join(part for part in _texts(fields) if part),
        message_id=text(fields.get("id") or fields.get("message_id")) or None,
        speaker=speaker or text(fields.get("name")) or None,
        sent_at=moment(written) or day_first(text(written)),
    )


def _chat(value: object, reading: Reading) -> Chat:
    fields = table(value)
    if "prompt" in fields and "completion" in fields:
        asked, answered = text(fields["prompt"]).removesuffix("->"), text(fields["completion"])
        turns = ((USER, asked), (ASSISTANT, answered))
        said = [ChatMessage(role=role, text=words.strip()) for role, words in turns]
        return Chat(messages=tuple(said))
    found = (
        value
        if isinstance(value, list)
        else next((fields[name] for name in _LISTS if isinstance(fields.get(name), list)), [])
    )
    own = text(fields.get("id") or fields.get("session_id") or fields.get("conversation_id"))
    return Chat(chat_id=own, messages=tuple(_messages(items(found), reading)))


def _messages(values: Sequence[object], reading: Reading) -> Iterator[ChatMessage]:
    for value in values:
        kind = text(table(value).get("type"))
        if (message := message_of(value)) is not None:
            yield message
        else:
            reading.skipped[kind if kind in _NO_MESSAGES else "no message"] += 1


def _unwrapped(fields: Table) -> Table:
    """Return the fields of a message that LangChain wrapped in ``data`` or ``kwargs``."""
    for name in ("data", "kwargs"):
        if isinstance(fields.get(name), dict):
            inner = table(fields[name])
            kind = fields.get("type") if name == "data" else inner.get("type") or _class_of(fields)
            return {**inner, "type": kind}
    return fields


def _class_of(fields: Table) -> str:
    path = items(fields.get("id"))
    return text(path[-1]) if path else ""


def _is_message(fields: Table) -> bool:
    inner = _unwrapped(fields)
    kind = text(inner.get("type"))
    if kind in _NO_MESSAGES:
        return False
    has_side = isinstance(inner.get("role"), str) or any(isinstance(inner.get(one), str) for one in _SPEAKERS)
    is_wrapped = inner is not fields and bool(kind)
    return is_wrapped or (has_side and any(name in inner for name in _CONTENT))


def _texts(fields: Mapping[str, object]) -> Iterator[str]:
    for name in _CONTENT:
        found = list(texts_of(fields.get(name), kinds=_TEXT))
        if found:
            # Parts of the AI SDK are one text that was cut where it streamed.
            yield "".join(found) if name == "parts" else "\n".join(found)
            return


def read_message_table(rows: Sequence[Mapping[str, str]]) -> Reading:
    """Read rows of a chat history table, each with a session and a message as JSON."""
    reading = Reading(format=TABLE_NAME)
    sessions: dict[str, list[ChatMessage]] = {}
    for number, row in enumerate(rows, start=1):
        try:
            message = message_of(json.loads(row["message"]))
        except ValueError:
            message = None
        if message is None:
            reading.failed.append((f"row {number}", "the message cannot be read"))
        else:
            sessions.setdefault(row.get("session_id", ""), []).append(message)
    reading.chats += [Chat(chat_id=name, messages=tuple(said)) for name, said in sessions.items()]
    return reading
