"""Slack's export: a folder a channel, a file a day, people by id."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Final

from producers.chat_formats.chats import PARTICIPANT, Chat, ChatMessage, Reading
from producers.chat_formats.values import Table, items, moment, table, text

NAME: Final = "slack"

_SPOKEN: Final = frozenset({"", "thread_broadcast", "me_message", "file_share"})
_PERSON: Final = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_NAMED_LINK: Final = re.compile(r"<[^<>|]+\|([^<>]*)>")
_LINK: Final = re.compile(r"<([^<>|]+)>")


def is_slack(value: object) -> bool:
    """Say whether ``value`` is a day of a channel."""
    found = [table(one) for one in items(value)]
    return any(
        one.get("type") == "message" and isinstance(one.get("ts"), str) and "role" not in one for one in found
    )


def people_of(value: object) -> Mapping[str, str]:
    """Return the names of people by their ids, out of ``users.json``."""
    users = [table(one) for one in items(value)]
    return {
        text(one.get("id")): text(table(one.get("profile")).get("display_name"))
        or text(one.get("real_name"))
        or text(one.get("name"))
        for one in users
    }


def read_slack(days: Sequence[object], people: Mapping[str, str]) -> Reading:
    """Read ``days``, each the messages of a channel, as one conversation each."""
    reading = Reading(format=NAME)
    for value in days:
        said = [
            message
            for one in sorted(map(table, items(value)), key=_when)
            if (message := _message(one, people, reading)) is not None
        ]
        reading.chats.append(Chat(messages=tuple(said)))
    return reading


def _when(message: Table) -> tuple[float, str]:
    written = text(message.get("ts"))
    found = moment(written)
    return (found.timestamp() if found is not None else 0.0, written)


def _message(message: Table, people: Mapping[str, str], reading: Reading) -> ChatMessage | None:
    subtype, user = text(message.get("subtype")), text(message.get("user"))
    if subtype not in _SPOKEN or message.get("hidden") or message.get("bot_id"):
        reading.skipped[subtype or "hidden or bot"] += 1
        return None
    words = _spoken(text(message.get("text")), people)
    if not words:
        reading.skipped["empty"] += 1
        return None
    return ChatMessage(
        role=PARTICIPANT,
        text=words,
        message_id=text(message.get("ts")) or None,
        speaker=people.get(user) or user,
        sent_at=moment(text(message.get("ts"))),
    )


def _spoken(written: str, people: Mapping[str, str]) -> str:
    """Put names in the place of ids and links, then undo the escapes: in this order nothing is read twice."""
    named = _PERSON.sub(lambda match: f"@{people.get(match[1], match[1])}", written)
    linked = _LINK.sub(r"\1", _NAMED_LINK.sub(r"\1", named))
    return html.unescape(linked).strip()
