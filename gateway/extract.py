"""``POST /extract``: take a transcript in, wait until it is remembered, answer with its facts."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from domain.arrivals import Acceptance, EndedConversation, Origin, Verdict
from domain.conversation import NIL_AVATAR, Message, UserRef
from domain.errors import ConflictError, InvalidInputError, ModelUnavailableError
from domain.jobs import Job, JobStatus
from domain.memory.facts import FactRow
from domain.text_cleaning import clean
from domain.transcripts import turns_of
from gateway.faults import UnansweredError
from gateway.parts import GatewayParts
from schemas.wire import Moment, Received

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_GROWTH: Final = 1.5


class ExtractRequest(Received):
    """A transcript and whose memory it belongs to; without ``ended_at`` the conversation ended just now."""

    transcript: str
    session_id: UUID
    user_id: UUID
    avatar_id: UUID | None = None
    ended_at: Moment | None = None


class ExtractTranscript:
    """Accept a transcript and wait for its job; a repeat finds the job ended and answers the same."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts

    async def __call__(
        self, request: ExtractRequest, *, tenant_id: str, traceparent: str | None
    ) -> Sequence[FactRow]:
        """Return the facts that the session of ``request`` is evidence of.

        Raises:
            InvalidInputError: the transcript is blank.
            ConflictError: the session is known with other content.
            ModelUnavailableError: the job is dead.
            UnansweredError: the job did not end in time; it goes on, and a repeat will find it.
        """
        acceptance = await self._parts.accept(self._ended(request, tenant_id, traceparent))
        if acceptance.verdict is Verdict.CONFLICT:
            raise ConflictError("the session is known with another transcript")
        try:
            async with asyncio.timeout(self._parts.answer_within_s):
                job = await self._ended_job(tenant_id, acceptance)
        except TimeoutError:
            raise UnansweredError("not remembered yet; ask again") from None
        if job.status is JobStatus.DEAD:
            raise ModelUnavailableError("the transcript could not be extracted")
        return await self._parts.answers.session_facts(tenant_id, acceptance.user_id, request.session_id)

    def _ended(self, request: ExtractRequest, tenant_id: str, traceparent: str | None) -> EndedConversation:
        ended_at = self._moment(request.ended_at)
        messages = self._messages(request.transcript, ended_at)
        if not messages:
            raise InvalidInputError("transcript: expected some text", field="transcript")
        return EndedConversation(
            tenant_id=tenant_id,
            user=UserRef(user_id=request.user_id),
            avatar_id=request.avatar_id or NIL_AVATAR,
            session_id=request.session_id,
            ended_at=ended_at,
            end_is_assumed=request.ended_at is None,
            messages=messages,
            origin=Origin.EXTRACT,
            traceparent=traceparent,
        )

    def _messages(self, transcript: str, ended_at: datetime) -> tuple[Message, ...]:
        cleaned = clean(transcript)
        if cleaned.changed:
            self._parts.metrics.repairs.labels(repair="cleaned_text").inc()
        # The ids are those of a transcript that comes over Kafka, so that both ways make the same session.
        return tuple(
            Message(
                message_id=f"#{position}",
                position=position,
                role=turn.role,
                content=turn.content,
                sent_at=ended_at,
            )
            for position, turn in enumerate(turns_of(cleaned.text))
        )

    def _moment(self, given: datetime | None) -> datetime:
        if given is None:
            return self._parts.clock.now()
        if given.tzinfo is None:
            self._parts.metrics.repairs.labels(repair="naive_time").inc()
            return given.replace(tzinfo=UTC)
        return given.astimezone(UTC)

    async def _ended_job(self, tenant_id: str, acceptance: Acceptance) -> Job:
        pause = _FIRST_PAUSE_S
        while True:
            job = await self._parts.answers.job(tenant_id, job_id=acceptance.job_id)
            if job.status.is_final and job.revision >= acceptance.revision:
                return job
            await self._parts.pause(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE_S)
