"""The envelope of every reply."""

from typing import Any, Literal

from pydantic import Field

from schemas.wire import Sent

ErrorCode = Literal[
    "invalid_request",
    "not_found",
    "conflict",
    "forbidden",
    "rate_limited",
    "budget_exhausted",
    "upstream_unavailable",
    "storage_unavailable",
    "deadline_exceeded",
    "internal",
]


class ErrorBody(Sent):
    """What went wrong; ``retryable`` says that the same request may succeed later."""

    code: ErrorCode
    message: str
    retryable: bool
    details: dict[str, Any] = Field(default_factory=dict)


class ErrorReply(Sent):
    """A request that was not answered."""

    ok: Literal[False] = False
    error: ErrorBody


class Reply(Sent):
    """A reply of either kind, as a caller reads it."""

    ok: bool
    result: Any = None
    error: ErrorBody | None = None
