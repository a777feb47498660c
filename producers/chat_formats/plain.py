"""Transcripts that somebody pasted: labels at the start of lines, in one of the usual sets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from producers.chat_formats.chats import ASSISTANT, SYSTEM, USER, Chat, ChatMessage, Reading

NAME: Final = "transcript"

_ROLES: Final = {
    "user": USER, "human": USER, "me": USER, "you": USER, "benutzer": USER, "utilisateur": USER,
    "usuario": USER, "assistant": ASSISTANT, "ai": ASSISTANT, "bot": ASSISTANT, "chatgpt": ASSISTANT,
    "claude": ASSISTANT, "gemini": ASSISTANT, "copilot": ASSISTANT, "assistent": ASSISTANT,
    "asistente": ASSISTANT, "system": SYSTEM,
}  # fmt: skip
_LABEL: Final = re.compile(rf"^\s*[*_#>\s]*({'|'.join(_ROLES)})\s*:[*_]*\s?(.*)$", re.IGNORECASE)
_FENCE: Final = "```"


@dataclass(slots=True)
class _Turn:
    role: str
    lines: list[str] = field(default_factory=list)


def is_plain(lines: Sequence[str]) -> bool:
    """Say whether a line outside of code begins with a label."""
    return any(turn.role != "" for turn in _turns(lines))


def read_plain(lines: Sequence[str]) -> Reading:
    """Read one conversation; a label inside a block of code is a part of what was said."""
    reading = Reading(format=NAME)
    said: list[ChatMessage] = []
    for turn in _turns(lines):
        words = "\n".join(turn.lines).strip()
        if turn.role:
            said.append(ChatMessage(role=turn.role, text=words))
        elif words:
            reading.skipped["line before the first label"] += len(turn.lines)
    reading.chats.append(Chat(messages=tuple(said)))
    return reading


def _turns(lines: Sequence[str]) -> list[_Turn]:
    turns = [_Turn("")]
    in_code = False
    for line in (one.rstrip("\r\n") for one in lines):
        label = None if in_code else _LABEL.match(line)
        if label is not None:
            turns.append(_Turn(_ROLES[label[1].casefold()]))
        turns[-1].lines.append(line if label is None else label[2])
        if line.count(_FENCE) % 2:
            in_code = not in_code
    return turns
