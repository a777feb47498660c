"""What callers of ``MemoryClient`` give and get, as messages of the wire."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from producers.client_errors import (
    MemoryClientError,
    MemoryNotFoundError,
    MemoryRequestError,
    MemoryUnavailableError,
)
from schemas.replies import ErrorBody, Reply
from schemas.wire import WireError, decode, problem_of

UserId = UUID | str

_UNAVAILABLE: Final = frozenset({"storage_unavailable", "upstream_unavailable", "deadline_exceeded"})


def user_fields(user: UserId) -> dict[str, str]:
    """Name ``user``: a UUID is ours, anything else an id of the caller's own."""
    return {"user_id": str(user)} if isinstance(user, UUID) else {"external_user_id": user}


def scope_key(tenant_id: str, user: UserId) -> bytes:
    """Return the key of everything that is about ``user``."""
    return f"{tenant_id}:{user}".encode()


def message_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``message`` with its times as text."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in message.items()
    }


def checked(model: type[BaseModel], fields: Mapping[str, Any]) -> bytes:
    """Write the message of ``fields`` as JSON, after a look whether the service would take it.

    Raises:
        MemoryRequestError: it would not; the error names the field.
    """
    body = orjson.dumps({name: value for name, value in fields.items() if value is not None})
    try:
        model.model_validate_json(body)
    except ValidationError as error:
        raise MemoryRequestError(str(problem_of(error)), code="invalid_request") from None
    return body


def messages_fields(messages: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Return ``messages`` for the wire; None, for "they came before", stays None and is not an empty list."""
    return None if messages is None else [message_fields(message) for message in messages]


def result_of(body: bytes) -> Any:
    """Return the result in a reply.

    Raises:
        MemoryClientError: the reply is an error, or none that can be read.
    """
    try:
        reply = decode(Reply, body)
    except WireError as error:
        raise MemoryClientError("the reply cannot be read") from error
    if reply.ok:
        return reply.result
    raise _raised(reply.error)


def _raised(error: ErrorBody | None) -> MemoryClientError:
    if error is None:
        return MemoryClientError("the reply is an error without a reason")
    if error.code == "not_found":
        return MemoryNotFoundError(error.message)
    if error.code in _UNAVAILABLE:
        return MemoryUnavailableError(error.message, code=error.code)
    if error.code == "internal":
        return MemoryClientError(error.message, code=error.code, retryable=error.retryable)
    return MemoryRequestError(error.message, code=error.code, retryable=error.retryable)
