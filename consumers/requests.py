"""Answer requests that come with a reply topic: at once, at most once, never late."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

import orjson

from domain.errors import (
    AfterwordError,
    BrokerUnavailableError,
    ConflictError,
    InfrastructureError,
    InvalidInputError,
    NotFoundError,
    PermanentError,
    TransientError,
)
from domain.outbox import RawRecord
from producers.replies import Replies
from producers.wire_json import to_json
from schemas import headers
from schemas.replies import ErrorBody, ErrorCode, ErrorReply
from telemetry.logs import log_context

logger = logging.getLogger(__name__)

Answer = Callable[[RawRecord], Awaitable[object]]
Wait = Callable[[RawRecord], Awaitable[object] | None]
"""Says what a request has to wait for before it is answered; None for nothing."""

_MOST_ANSWER_SECONDS: Final = 30.0
_MOST_WAITING: Final = 10_000


class Answered(StrEnum):
    """How a request ended; the last four got no reply."""

    OK = "ok"
    FAILED = "failed"
    DEADLINE = "deadline"
    REPLY_TOPIC = "reply_topic"
    UNDECODABLE = "undecodable"
    UNSENT = "unsent"


class RequestHandler:
    """Answers one kind of request. There is no retry and no dead letter: a late answer is worthless.

    A request is dropped when its deadline has passed, when its ``reply_to`` is missing or not allowed, or
    when its correlation id cannot be read. Errors are answered, typed; the caller carries on without memory.
    """

    def __init__(
        self,
        answer: Answer,
        replies: Replies,
        *,
        wait: Wait = lambda _record: None,
        on_answered: Callable[[Answered, float], None] = lambda _answered, _seconds: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._answer = answer
        self._replies = replies
        self._wait = wait
        self._on_answered = on_answered
        self._now = now
        self._late: set[asyncio.Task[None]] = set()

    async def __call__(self, record: RawRecord) -> None:
        """Answer ``record``, or see to it that it is answered later; whatever it holds, nothing is raised."""
        waiting = self._wait(record) if len(self._late) < _MOST_WAITING else None
        if waiting is None:
            await self._answered(record)
            return
        # Whoever reads the topic goes on with the next request meanwhile.
        task = asyncio.create_task(self._answered_after(waiting, record))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _answered_after(self, waiting: Awaitable[object], record: RawRecord) -> None:
        await waiting
        await self._answered(record)

    async def _answered(self, record: RawRecord) -> None:
        started = time.perf_counter()
        with log_context(topic=record.topic):
            answered = await self._handled(record)
            if answered not in (Answered.OK, Answered.FAILED):
                logger.info("request dropped: %s", answered)
        self._on_answered(answered, time.perf_counter() - started)

    async def _handled(self, record: RawRecord) -> Answered:
        reply_to = headers.text(record.headers, headers.REPLY_TO)
        correlation_id = headers.correlation_id(record.headers)
        left = self._seconds_left(record)
        if left <= 0:
            return Answered.DEADLINE
        if reply_to is None or not self._replies.allows(reply_to):
            return Answered.REPLY_TOPIC
        if correlation_id is None:
            return Answered.UNDECODABLE
        try:
            async with asyncio.timeout(min(left, _MOST_ANSWER_SECONDS)):
                answered, body = await self._body(record)
        except TimeoutError:
            return Answered.DEADLINE
        partition = headers.number(record.headers, headers.REPLY_PARTITION)
        try:
            await self._replies.send(reply_to, body, partition=partition, correlation_id=correlation_id)
        except (BrokerUnavailableError, PermanentError) as error:
            logger.warning("a reply was not sent: %s", type(error).__name__)
            return Answered.UNSENT
        return answered

    def _seconds_left(self, record: RawRecord) -> float:
        deadline = headers.number(record.headers, headers.DEADLINE_MS)
        return _MOST_ANSWER_SECONDS if deadline is None else deadline / 1_000 - self._now()

    async def _body(self, record: RawRecord) -> tuple[Answered, bytes]:
        try:
            result = await self._answer(record)
            return Answered.OK, to_json({"ok": True, "result": result})
        except AfterwordError as error:
            return Answered.FAILED, error_reply(error)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - the last stop: a caller must hear of a bug, not wait for it
            logger.error("a request failed: %s", type(error).__name__)  # noqa: TRY400 - its text may quote people
            return Answered.FAILED, error_reply(error)


def error_reply(error: Exception) -> bytes:
    """Return the envelope for ``error``; only what a caller sent wrong is told in words."""
    match error:
        case InvalidInputError():
            body = _error("invalid_request", str(error), field=error.field)
        case NotFoundError():
            body = _error("not_found", str(error))
        case ConflictError():
            body = _error("conflict", str(error))
        case InfrastructureError():
            body = _error("storage_unavailable", "the store did not answer", retryable=True)
        case TransientError():
            body = _error("upstream_unavailable", "a model did not answer", retryable=True)
        case _:
            body = _error("internal", "the request failed", retryable=True)
    return orjson.dumps(ErrorReply(error=body).model_dump(mode="json"))


def _error(code: ErrorCode, message: str, *, retryable: bool = False, field: str = "") -> ErrorBody:
    details = {"field": field} if field else {}
    return ErrorBody(code=code, message=message, retryable=retryable, details=details)
