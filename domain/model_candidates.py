"""From the memories of a model's answer to candidates: whose words, when, and in which order."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from domain.candidates import Candidate, Method
from domain.conversation import Message
from domain.memory.assertions import Corrects, Stance
from domain.memory.slots import SELF
from domain.model_answer import ModelAnswer, ModelMemory, plain_id
from domain.windows import Window

_USER_NAMES: Final = frozenset({"", "self", "user", "the user", "me", "i", "myself", "speaker"})
_YEAR_OR_MONTH: Final = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_MAX_EXCERPT: Final = 200
_MIN_QUOTE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Which model said it, by which specification."""

    model: str
    spec_version: str


def candidates_of(answer: ModelAnswer, window: Window, provenance: Provenance) -> tuple[Candidate, ...]:
    """Return the candidates of ``answer`` in the order in which they were said; equal ones once.

    Ids that were not offered are dropped; where none is left, the excerpt or the value says which message is
    meant. What rests on the overlap alone belongs to the window before and is left to it.
    """
    messages = {plain_id(message.message_id): message for message in window.messages}
    order = {message.message_id: place for place, message in enumerate(window.messages)}
    found: dict[Candidate, int] = {}
    for memory in answer.memories:
        cited = _cited(memory, window, messages)
        if cited and all(order[message.message_id] < window.overlap for message in cited):
            continue
        place = order[cited[0].message_id] if cited else len(order)
        found.setdefault(_candidate(memory, window, cited, provenance), place)
    said = sorted(found, key=found.__getitem__)
    return tuple(replace(candidate, position=position) for position, candidate in enumerate(said))


def _candidate(
    memory: ModelMemory, window: Window, cited: tuple[Message, ...], provenance: Provenance
) -> Candidate:
    zone = zone_of(window.timezone)
    return Candidate(
        category=memory.category,
        key=memory.key,
        value=memory.value,
        about=SELF if memory.about.casefold() in _USER_NAMES else memory.about.casefold(),
        qualifier=memory.qualifier.casefold(),
        stance=Stance(memory.stance),
        amends=None if memory.corrects is None else Corrects(memory.corrects or None),
        content=memory.content,
        confidence=memory.confidence,
        importance=memory.importance,
        said_at=cited[0].sent_at if cited else _last_word(window),
        valid_from=moment_of(memory.valid_from, zone),
        expires_at=moment_of(memory.expires_at, zone),
        message_ids=tuple(message.message_id for message in cited),
        excerpt=memory.excerpt[:_MAX_EXCERPT],
        asserted_by=_asserted_by(cited),
        method=Method.LLM,
        model=provenance.model,
        spec_version=provenance.spec_version,
        reasoning=memory.reasoning,
    )


def _cited(memory: ModelMemory, window: Window, messages: Mapping[str, Message]) -> tuple[Message, ...]:
    """Return the cited messages that were offered, in the order of the conversation."""
    named = {messages[cited].message_id for cited in memory.cited if cited in messages}
    if not named:
        named = _holding(memory.excerpt, window) or _holding(memory.value, window)
    return tuple(message for message in window.messages if message.message_id in named)


def _holding(words: str, window: Window) -> set[str]:
    """Return the id of the message that holds ``words``, the user's own first; empty when there is none."""
    wanted = _plain(words)
    if len(wanted) < _MIN_QUOTE:
        return set()
    holding = [message for message in window.messages if wanted in _plain(message.content)]
    holding.sort(key=lambda message: not message.is_user)
    return {message.message_id for message in holding[:1]}


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _asserted_by(cited: tuple[Message, ...]) -> str:
    """Name who said it: the user, unless every cited message is somebody else's."""
    if not cited or any(message.is_user for message in cited):
        return "user"
    return "assistant" if cited[0].is_assistant else cited[0].role.casefold()


def _last_word(window: Window) -> datetime:
    last = next((message for message in reversed(window.messages) if message.is_user), None)
    return window.ended_at if last is None else last.sent_at


def zone_of(name: str | None) -> tzinfo:
    """Return the zone called ``name``; UTC where there is none of that name."""
    try:
        return ZoneInfo(name) if name else UTC
    except (OSError, ValueError):
        return UTC
    except KeyError:  # ZoneInfoNotFoundError
        return UTC


def moment_of(text: str, zone: tzinfo) -> datetime | None:
    """Read a day or a time, in ``zone`` where it names none; None where it is no date."""
    try:
        moment = _parsed(text.strip())
        return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=zone)
    except ValueError:
        return None


def _parsed(text: str) -> datetime | None:
    part = _YEAR_OR_MONTH.fullmatch(text)
    if part is not None:
        return datetime(int(part.group(1)), int(part.group(2) or 1), 1)  # noqa: DTZ001 - the zone comes after
    return datetime.fromisoformat(text) if text else None
