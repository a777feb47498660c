"""Messages of the wire in the domain's terms; past this line nobody knows Kafka or pydantic."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final
from uuid import UUID

from consumers.times import at, zone_of
from domain.arrivals import EndedConversation, Origin, PostedMessage
from domain.conversation import LIVE, NIL_AVATAR, Message, UserRef
from domain.errors import InvalidInputError
from domain.jobs import JobKind, JobOrder
from domain.outbox import RawRecord
from domain.text_cleaning import clean
from domain.transcripts import turns_of
from schemas import conversation as wire
from schemas import headers
from schemas.jobs import ExtractionJob
from telemetry.tracing import traceparent_of

_MOST_NAME_CHARS: Final = 200
_MOST_ROLE_CHARS: Final = 100


class Repair(StrEnum):
    """What had to be mended in a message that was taken in."""

    NAIVE_TIME = "naive_time"
    UNKNOWN_ZONE = "unknown_zone"
    CLEANED_TEXT = "cleaned_text"
    EMPTY_MESSAGE = "empty_message"
    REPEATED_ID = "repeated_id"


Repairs = Counter[Repair]


def user_of(message: wire.Scoped) -> UserRef:
    """Return the user that ``message`` names."""
    return UserRef(user_id=message.user_id, external_user_id=message.external_user_id)


def avatar_of(message: wire.Scoped) -> UUID:
    """Return the avatar that ``message`` names, else the nil one."""
    return message.avatar_id or NIL_AVATAR


class Translator:
    """Translates one record and counts what it had to mend."""

    def __init__(self) -> None:
        self.repairs: Repairs = Counter()

    def ended(
        self,
        message: wire.ConversationEnded,
        record: RawRecord,
        *,
        origin: Origin = Origin.LIVE,
        generation: str = LIVE,
    ) -> EndedConversation:
        """Return the conversation of ``message``; ``record`` gives the trace and correlation ids."""
        zone = self._zone(message.timezone)
        ended_at = self._at(message.ended_at, zone)
        return EndedConversation(
            tenant_id=message.tenant_id,
            user=user_of(message),
            avatar_id=avatar_of(message),
            session_id=message.session_id,
            ended_at=ended_at,
            started_at=self._at(message.started_at, zone) if message.started_at else None,
            message_count=message.message_count,
            timezone=message.timezone if zone else None,
            language=self._short(message.language, _MOST_ROLE_CHARS),
            messages=self._said(message, ended_at, zone),
            generation=generation,
            origin=origin,
            traceparent=traceparent_of(record.headers),
            correlation_id=headers.correlation_id(record.headers),
        )

    def posted(self, message: wire.MessagePosted, record: RawRecord) -> PostedMessage | None:
        """Return the message; None when it has no text. One without a time was said when it was sent."""
        zone = self._zone(message.timezone)
        content = self._content(message.content)
        if content is None:
            return None
        sent_at = message.sent_at or record.timestamp
        if sent_at is None:
            raise InvalidInputError("sent_at: expected a time, for the record has none", field="sent_at")
        return PostedMessage(
            tenant_id=message.tenant_id,
            user=user_of(message),
            avatar_id=avatar_of(message),
            session_id=message.session_id,
            message=Message(
                message_id=self._id(message.message_id, message.position),
                position=message.position,
                role=self._clean(message.role)[:_MOST_ROLE_CHARS],
                content=content,
                sent_at=self._at(sent_at, zone),
                name=self._short(message.name, _MOST_NAME_CHARS),
            ),
            timezone=message.timezone if zone else None,
            language=self._short(message.language, _MOST_ROLE_CHARS),
        )

    def _said(
        self, message: wire.ConversationEnded, ended_at: datetime, zone: tzinfo | None
    ) -> tuple[Message, ...] | None:
        if message.transcript is not None:
            return tuple(self._turns(message.transcript, ended_at))
        if message.messages is None:
            return None
        return tuple(self._distinct(list(self._messages(message.messages, ended_at, zone))))

    def _turns(self, transcript: str, ended_at: datetime) -> Iterable[Message]:
        for position, turn in enumerate(turns_of(self._clean(transcript))):
            yield Message(
                message_id=self._id(None, position),
                position=position,
                role=turn.role,
                content=turn.content,
                sent_at=ended_at,
            )

    def _messages(
        self, messages: Sequence[wire.Message], ended_at: datetime, zone: tzinfo | None
    ) -> Iterable[Message]:
        for position, message in enumerate(messages):
            content = self._content(message.content)
            if content is None:
                continue
            own_zone = self._zone(message.timezone)
            yield Message(
                message_id=self._id(message.message_id, position),
                position=position,
                role=self._clean(message.role)[:_MOST_ROLE_CHARS],
                content=content,
                sent_at=self._at(message.sent_at, own_zone, zone) if message.sent_at else ended_at,
                name=self._short(message.name, _MOST_NAME_CHARS),
            )

    def _distinct(self, messages: Sequence[Message]) -> Iterable[Message]:
        """Give a message whose id came before in its session another id; drop it if it says the same."""
        seen: dict[str, Message] = {}
        taken = {message.message_id for message in messages}
        for message in messages:
            first = seen.setdefault(message.message_id, message)
            if first is message:
                yield message
                continue
            self.repairs[Repair.REPEATED_ID] += 1
            if (first.role, first.content) != (message.role, message.content):
                other = f"{message.message_id}#{message.position}"
                while other in taken:
                    other += "#"
                taken.add(other)
                yield replace(message, message_id=other)

    def _id(self, given: str | int | None, position: int) -> str:
        cleaned = self._clean(str(given)).strip()[:_MOST_NAME_CHARS] if given is not None else ""
        return cleaned or f"#{position}"

    def _content(self, content: str | None) -> str | None:
        cleaned = self._clean(content) if content is not None else ""
        if not cleaned.strip():
            self.repairs[Repair.EMPTY_MESSAGE] += 1
            return None
        return cleaned

    def _clean(self, text: str) -> str:
        cleaned = clean(text)
        if cleaned.changed:
            self.repairs[Repair.CLEANED_TEXT] += 1
        return cleaned.text

    def _short(self, text: str | None, most: int) -> str | None:
        return self._clean(text)[:most] or None if text is not None else None

    def _zone(self, name: str | None) -> tzinfo | None:
        zone = zone_of(name)
        if name and zone is None:
            self.repairs[Repair.UNKNOWN_ZONE] += 1
        return zone

    def _at(self, moment: datetime, *zones: tzinfo | None) -> datetime:
        return at(moment, *zones, on_naive=self._count_naive)

    def _count_naive(self) -> None:
        self.repairs[Repair.NAIVE_TIME] += 1


def order_of(job: ExtractionJob, record: RawRecord) -> JobOrder:
    """Return what a record of a jobs topic asks for."""
    return JobOrder(
        kind=JobKind(job.kind),
        tenant_id=job.tenant_id,
        user_id=job.user_id,
        avatar_id=job.avatar_id,
        job_id=job.job_id,
        session_id=job.session_id,
        generation=job.generation,
        traceparent=traceparent_of(record.headers),
        correlation_id=headers.correlation_id(record.headers),
    )


def moment_of(moment: datetime | None) -> datetime | None:
    """Return a time of a request in UTC; one without a zone is in UTC."""
    return at(moment, UTC, on_naive=lambda: None) if moment is not None else None
