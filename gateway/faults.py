"""What goes wrong, as an answer: a status, a code of the contract, and nothing of what was sent."""

from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from domain.errors import (
    AfterwordError,
    ConflictError,
    InfrastructureError,
    InvalidInputError,
    ModelRefusedError,
    NotFoundError,
    PermanentError,
    TransientError,
)
from schemas.replies import ErrorBody, ErrorCode, ErrorReply
from schemas.wire import WireError

STATUS_OF: Final[dict[ErrorCode, int]] = {
    "invalid_request": 422,
    "not_found": 404,
    "conflict": 409,
    "forbidden": 403,
    "rate_limited": 429,
    "budget_exhausted": 402,
    "upstream_unavailable": 503,
    "storage_unavailable": 503,
    "deadline_exceeded": 504,
    "internal": 500,
}
_CODE_OF_STATUS: Final[dict[int, ErrorCode]] = {401: "forbidden", 403: "forbidden", 404: "not_found"}
# The original service answers 503 for anything that it did not foresee, and its callers know no other.
_FAILS_CLOSED: Final = ("/get_injection_context", "/extract", "/api_lis/memory")
_CLOSED_STATUS: Final = 503
_UNAUTHORIZED: Final = 401
_FIRST_SERVER_ERROR: Final = 500


class UnansweredError(TransientError):
    """The answer is not there within the time of the request."""


def code_of(error: AfterwordError) -> ErrorCode:
    """Return the code of the contract for ``error``."""
    match error:
        case InvalidInputError():
            return "invalid_request"
        case NotFoundError():
            return "not_found"
        case ConflictError():
            return "conflict"
        case InfrastructureError():
            return "storage_unavailable"
        case ModelRefusedError() | TransientError():
            return "upstream_unavailable"
        case _:
            return "invalid_request" if isinstance(error, PermanentError) else "internal"


def answer(
    code: ErrorCode,
    message: str,
    *,
    path: str = "",
    status: int | None = None,
    field: str = "",
    retryable: bool = False,
) -> JSONResponse:
    """Return the answer for ``code``; on the routes of the original service every fault of ours is a 503."""
    number = status or STATUS_OF[code]
    if number >= _FIRST_SERVER_ERROR and path.startswith(_FAILS_CLOSED):
        number = _CLOSED_STATUS
    details: dict[str, Any] = {"field": field} if field else {}
    body = ErrorBody(code=code, message=message, retryable=retryable, details=details)
    headers = {"www-authenticate": "Bearer"} if number == _UNAUTHORIZED else None
    return JSONResponse(ErrorReply(error=body).model_dump(mode="json"), status_code=number, headers=headers)


def add_fault_handlers(app: FastAPI) -> None:
    """Answer every exception that leaves a route in the words of the contract."""
    app.add_exception_handler(AfterwordError, _on_our_error)
    app.add_exception_handler(WireError, _on_wrong_body)
    app.add_exception_handler(RequestValidationError, _on_wrong_parameter)
    app.add_exception_handler(HTTPException, _on_status)
    app.add_exception_handler(Exception, _on_surprise)


async def _on_our_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, AfterwordError):
        raise error
    field = error.field if isinstance(error, InvalidInputError) else ""
    retryable = isinstance(error, TransientError)
    return answer(code_of(error), str(error), path=request.url.path, field=field, retryable=retryable)


async def _on_wrong_body(request: Request, error: Exception) -> JSONResponse:
    field = error.field if isinstance(error, WireError) else ""
    return answer("invalid_request", str(error), path=request.url.path, field=field)


async def _on_wrong_parameter(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    field = str(first["loc"][-1])
    return answer("invalid_request", f"{field}: {first['msg']}", path=request.url.path, field=field)


async def _on_status(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    code = _CODE_OF_STATUS.get(error.status_code, "invalid_request")
    return answer(code, str(error.detail), path=request.url.path, status=error.status_code)


async def _on_surprise(request: Request, _: Exception) -> JSONResponse:
    return answer(
        "internal", "something went wrong here; it was logged", path=request.url.path, retryable=True
    )
