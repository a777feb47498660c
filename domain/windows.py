"""Windows: a long session is read in pieces of whole turns (docs/architecture/extraction.md)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.conversation import Message, SessionText

WINDOW_CHARS: Final = 12_000
OVERLAP_TURNS: Final = 2

# Where a turn may be cut, the best place first.
_BORDERS: Final = ("\n\n", "\n", ". ", "! ", "? ", "\u3002", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A piece of a session; the first ``overlap`` messages were in the window before and are context only."""

    session_id: UUID
    index: int
    messages: tuple[Message, ...]
    overlap: int
    ended_at: datetime
    timezone: str | None
    language: str | None
    may_be_sensitive: bool = False
    """Whether the tenant allows any special category, so that a reader may look for them."""

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """The messages that no window before had."""
        return self.messages[self.overlap :]


def windows_of(
    session: SessionText, max_chars: int = WINDOW_CHARS, overlap: int = OVERLAP_TURNS
) -> list[Window]:
    """Cut ``session`` into windows of at most ``max_chars``.

    Every turn is new in exactly one window. A longer turn is split, and its parts keep its id and position; a
    part is never the context of another part of its turn, so within a window an id is either context or new.
    """
    parts = [part for message in session.messages for part in _parts(message, max_chars)]
    return [
        Window(
            session_id=session.session_id,
            index=index,
            messages=tuple(parts[start - context : end]),
            overlap=context,
            ended_at=session.ended_at,
            timezone=session.timezone,
            language=session.language,
        )
        for index, (start, end, context) in enumerate(_cuts(parts, max_chars, overlap))
    ]


def owns(window: Window, message_ids: Sequence[str]) -> bool:
    """Tell whether a statement that cites ``message_ids`` is this window's to propose.

    It is, when it cites a message that is new here. One that cites nothing but context was proposed by the
    window before, so that nothing is proposed twice.
    """
    new = {message.message_id for message in window.new_messages}
    return not new.isdisjoint(message_ids)


def window_digest(window: Window) -> str:
    """Name what an extractor reads of ``window``, so that equal content need not be read twice."""
    digest = hashlib.sha256()
    context = (str(window.overlap), window.timezone or "", window.language or "")
    messages = (
        part
        for message in window.messages
        for part in (message.message_id, message.role, message.content, message.sent_at.isoformat())
    )
    for part in (*context, *messages, *(("sensitive",) if window.may_be_sensitive else ())):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def _cuts(parts: Sequence[Message], max_chars: int, overlap: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each window's new parts begin and end, and how many parts before are its context."""
    start = 0
    while start < len(parts):
        context = _context(parts, start, max_chars, overlap)
        size = sum(len(part.content) for part in parts[start - context : start])
        end = start
        while end < len(parts) and (end == start or size + len(parts[end].content) <= max_chars):
            size += len(parts[end].content)
            end += 1
        yield start, end, context
        start = end


def _context(parts: Sequence[Message], start: int, max_chars: int, overlap: int) -> int:
    size, taken = len(parts[start].content), 0
    for part in reversed(parts[max(0, start - overlap) : start]):
        size += len(part.content)
        if size > max_chars or part.message_id == parts[start].message_id:
            break
        taken += 1
    return taken


def _parts(message: Message, max_chars: int) -> Iterator[Message]:
    text, start = message.content, 0
    while len(text) - start > max_chars:
        end = _border(text, start, start + max_chars)
        yield replace(message, content=text[start:end])
        start = end
    yield replace(message, content=text[start:]) if start else message


def _border(text: str, start: int, limit: int) -> int:
    """Return the last good place for a cut in the second half of the text up to ``limit``."""
    earliest = start + (limit - start) // 2
    for border in _BORDERS:
        found = text.rfind(border, earliest, limit)
        if found > start:
            return found + len(border)
    return limit
