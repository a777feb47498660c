"""WhatsApp's exported chats: a line a message, its head written as the phone's region writes dates."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from producers.chat_formats.chats import PARTICIPANT, Chat, ChatMessage, Reading
from producers.chat_formats.dates import DateOrder, date_of, order_of

NAME: Final = "whatsapp"

_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPACES: Final = re.compile("[\u202f\u00a0]")
_HEAD: Final = re.compile(
    r"^\[?(?P<when>\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s*[ap]\.?\s?m\.?)?)"
    r"(?:\]\s?|\s-\s)(?P<rest>.*)$",
    re.IGNORECASE,
)
_SPEAKER: Final = re.compile(r"^(?P<name>[^:\n]{1,80}):\s(?P<body>.*)$", re.DOTALL)
_EDITED: Final = re.compile(r"\s*<[^<>]*(?:edited|bearbeitet|modifié|editado)[^<>]*>$", re.IGNORECASE)
_ATTACHED: Final = re.compile(r"^<(?:attached|Anhang|pièce jointe|adjunto)\s?: [^<>]+>$", re.IGNORECASE)
_OMITTED: Final = re.compile(
    r"^(?:<[^<>]*(?:omitted|ausgeschlossen|weggelassen|omis|omitido)[^<>]*>"
    r"|(?:image|video|audio|GIF|sticker|document|Contact card|Bild|Video|Audio|Dokument)"
    r" (?:omitted|weggelassen)"
    r"|null"
    r"|(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht)\.?)$",
    re.IGNORECASE,
)
_NOTICE: Final = re.compile(
    r"end-to-end encrypted|Ende-zu-Ende-verschlüsselt|chiffrés de bout en bout", re.IGNORECASE
)
_LINES_LOOKED_AT: Final = 20


@dataclass(slots=True)
class _Entry:
    when: str
    lines: list[str] = field(default_factory=list)


def is_whatsapp(lines: Sequence[str]) -> bool:
    """Say whether one of the first lines has the head of a message."""
    return any(_HEAD.match(_plain(line)) for line in lines[:_LINES_LOOKED_AT])


def read_whatsapp(lines: Sequence[str], *, order: DateOrder | None = None) -> Reading:
    """Read a chat; each day of it is a conversation of its own, so that a longer export adds days."""
    reading = Reading(format=NAME)
    entries = list(_entries(lines, reading))
    guessed, is_sure = order_of([entry.when for entry in entries])
    if order is None and not is_sure:
        reading.assumed.append(f"dates are {guessed}; --date-order says otherwise")
    days: dict[str, list[ChatMessage]] = {}
    for entry in entries:
        when = date_of(entry.when, order or guessed)
        message = _message(entry, when, reading)
        if when is None:
            reading.failed.append((entry.when, f"no date in the order {order or guessed}"))
        elif message is not None:
            days.setdefault(when.date().isoformat(), []).append(message)
    reading.chats += [Chat(messages=tuple(said)) for said in days.values()]
    return reading


def _plain(line: str) -> str:
    return _SPACES.sub(" ", _MARKS.sub("", line.rstrip("\r\n")))


def _entries(lines: Sequence[str], reading: Reading) -> Iterator[_Entry]:
    entry: _Entry | None = None
    for line in map(_plain, lines):
        head = _HEAD.match(line)
        if head is not None:
            if entry is not None:
                yield entry
            entry = _Entry(head["when"], [head["rest"]])
        elif entry is not None:
            entry.lines.append(line)
        elif line.strip():
            reading.skipped["line before the first message"] += 1
    if entry is not None:
        yield entry


def _message(entry: _Entry, when: datetime | None, reading: Reading) -> ChatMessage | None:
    said = _SPEAKER.match("\n".join(entry.lines).strip())
    if said is None or _NOTICE.search(said["body"]):
        reading.skipped["notice"] += 1
        return None
    body = _EDITED.sub("", said["body"]).strip()
    if not body or _OMITTED.match(body):
        reading.skipped["media or deleted"] += 1
        return None
    return ChatMessage(
        role=PARTICIPANT,
        text="" if _ATTACHED.match(body) else body,
        speaker=said["name"].strip().removeprefix("~").strip(),
        sent_at=when,
    )
