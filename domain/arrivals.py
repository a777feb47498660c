"""What reaches intake, and what became of it (docs/architecture/intake.md)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from domain.conversation import LIVE, NIL_AVATAR, Message, UserRef
from domain.memory.values import normalise
from domain.replays import ReplayMode


class Origin(StrEnum):
    """Which door a conversation came through; replayed and ingested ones have a lane of their own."""

    LIVE = "live"
    REPLAY = "replay"
    EXTRACT = "extract"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedConversation:
    """A conversation that ended. ``messages`` is None when they came before, and empty when there were none.

    With ``end_is_assumed`` nobody said when it ended: ``ended_at`` is the moment of receipt, and a repeat,
    which comes later by nature, is no later end. One that is replayed under a label has it as ``generation``.
    """

    tenant_id: str
    user: UserRef
    avatar_id: UUID = NIL_AVATAR
    session_id: UUID
    ended_at: datetime
    end_is_assumed: bool = False
    started_at: datetime | None = None
    message_count: int | None = None
    timezone: str | None = None
    language: str | None = None
    messages: tuple[Message, ...] | None = None
    generation: str = LIVE
    origin: Origin = Origin.LIVE
    replay_id: str | None = None
    replay_mode: ReplayMode | None = None
    traceparent: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedMessage:
    """One message of a conversation that may still go on."""

    tenant_id: str
    user: UserRef
    avatar_id: UUID = NIL_AVATAR
    session_id: UUID
    message: Message
    timezone: str | None = None
    language: str | None = None


class Verdict(StrEnum):
    """What the arrival of an ended conversation did."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REVISED = "revised"
    CONFLICT = "conflict"
    WAITING = "waiting"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The answer of intake: the job of the session in this generation."""

    verdict: Verdict
    job_id: UUID
    user_id: UUID
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSession:
    """What is stored of a session when another arrival of it is looked at.

    ``has_job`` and ``revision`` are of the job that the arrival addresses.
    """

    ended_at: datetime | None
    message_count: int | None
    digest: bytes | None
    messages: tuple[Message, ...]
    revision: int
    has_job: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to store after an arrival: ``messages`` is the whole session as it is now.

    Unless ``is_stored``, the session stays as it is, and only a job comes to it.
    """

    verdict: Verdict
    messages: tuple[Message, ...]
    digest: bytes
    ended_at: datetime
    is_stored: bool = True


def content_digest(messages: Sequence[Message]) -> bytes:
    """Digest the ordered (role, normalised text) of a session: what makes two sendings the same content."""
    digest = hashlib.sha256()
    for message in messages:
        for part in (message.role.casefold(), normalise(message.content)):
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(4, "big"))
            digest.update(encoded)
    return digest.digest()


def together(posted: Sequence[Message], sent: Sequence[Message]) -> tuple[Message, ...]:
    """Put messages posted before and those of the ended event together, matched by id, else by position.

    Where both speak of one message, the ended event's wording counts.
    """
    ids, places = {m.message_id for m in sent}, {m.position for m in sent}
    kept = [m for m in posted if m.message_id not in ids and m.position not in places]
    return tuple(sorted([*kept, *sent], key=lambda m: (m.position, m.message_id)))


def decide(known: KnownSession | None, arriving: EndedConversation) -> Decision:
    """Decide what the arrival of ``arriving`` does, given what is ``known`` of its session.

    The rules: docs/architecture/intake.md, "The same session again".
    """
    posted = known.messages if known else ()
    whole = together(posted, arriving.messages) if arriving.messages is not None else tuple(posted)
    digest = content_digest(whole)
    decision = Decision(verdict=Verdict.ACCEPTED, messages=whole, digest=digest, ended_at=arriving.ended_at)
    if known is None:
        return _first(decision, arriving)
    if arriving.generation != LIVE and known.ended_at is not None:
        return _under_label(decision, known, arriving)
    return _again(decision, known, arriving) if known.has_job else _first(decision, arriving)


def _first(decision: Decision, arriving: EndedConversation) -> Decision:
    verdict = Verdict.ACCEPTED
    if arriving.messages is None and is_incomplete(len(decision.messages), arriving.message_count):
        verdict = Verdict.WAITING
    elif not decision.messages:
        verdict = Verdict.EMPTY
    return replace(decision, verdict=verdict)


def _under_label(decision: Decision, known: KnownSession, arriving: EndedConversation) -> Decision:
    """Decide for a label: the same content is done again; other content is a revision of what was said.

    A shadow is to change nothing that is served, and so takes no revision in.
    """
    as_it_is = replace(decision, is_stored=False)
    if decision.digest == known.digest:
        return replace(as_it_is, verdict=Verdict.DUPLICATE) if known.has_job else _first(as_it_is, arriving)
    if arriving.replay_mode is ReplayMode.SHADOW:
        return replace(as_it_is, verdict=Verdict.CONFLICT)
    return _again(decision, known, arriving)


def _again(decision: Decision, known: KnownSession, arriving: EndedConversation) -> Decision:
    is_later = (
        known.ended_at is not None and not arriving.end_is_assumed and arriving.ended_at > known.ended_at
    )
    if decision.digest == known.digest:
        verdict = Verdict.REVISED if is_later else Verdict.DUPLICATE
    elif is_later or _extends(decision.messages, known.messages):
        verdict = Verdict.REVISED
    else:
        verdict = Verdict.CONFLICT
    ended_at = max(arriving.ended_at, known.ended_at) if known.ended_at is not None else arriving.ended_at
    return replace(decision, verdict=verdict, ended_at=ended_at)


def _extends(whole: Sequence[Message], known: Sequence[Message]) -> bool:
    """Say whether ``whole`` has every message of ``known`` as it was, and more."""
    now = {message.message_id: message for message in whole}
    same = all(
        message.message_id in now
        and normalise(now[message.message_id].content) == normalise(message.content)
        and now[message.message_id].role.casefold() == message.role.casefold()
        for message in known
    )
    return same and len(whole) > len(known)


def is_incomplete(found: int, announced: int | None) -> bool:
    """Say whether messages that came before the end are still missing."""
    return found == 0 if announced is None else found < max(announced, 1)
