"""What every request passes before a route sees it: who calls, how much they send, and what is counted."""

import hashlib
import hmac
import time
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.faults import answer
from gateway.parts import DEFAULT_TENANT, AccessToken
from telemetry.metrics import Metrics
from telemetry.tracing import continued

_OPEN_PATHS: Final = frozenset({"/health", "/ready"})
_LOCAL_NAMES: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_SCHEME: Final = "bearer"
_SERVER_ERROR: Final = 500
_TOO_LARGE: Final = "the body is larger than this service takes"


class BearerTokens:
    """Let in who shows a known token, as the token's tenant.

    Without any tokens everybody on this machine is ``default``. A page in a browser there is not: it may have
    made its own name mean this machine, and then its requests name that host.
    """

    def __init__(self, app: ASGIApp, *, tokens: Sequence[AccessToken]) -> None:
        self._app = app
        self._tokens = [(_digest(token.secret), token.tenant_id) for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the tenant in its state, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        tenant = self._tenant_of(headers.get("authorization", "")) if self._tokens else _local_tenant(headers)
        if tenant is None and scope["path"] not in _OPEN_PATHS:
            await self._refusal()(scope, receive, send)
            return
        scope.setdefault("state", {})["tenant_id"] = tenant or DEFAULT_TENANT
        await self._app(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        if self._tokens:
            return answer("forbidden", "a bearer token of this service is needed", status=401)
        return answer("forbidden", "without tokens this service answers to this machine alone")

    def _tenant_of(self, authorization: str) -> str | None:
        scheme, _, shown = authorization.partition(" ")
        if scheme.lower() != _SCHEME:
            return None
        digest = _digest(shown.strip())
        tenant = None
        # Every token is looked at, so that the time tells nothing about where a match is.
        for known, tenant_id in self._tokens:
            if hmac.compare_digest(digest, known):
                tenant = tenant_id
        return tenant


class BodyLimit:
    """Refuse a body of more than ``limit`` bytes, by what it announces and by what comes."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, its body counted as it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._limit:
            refusal = answer("invalid_request", _TOO_LARGE, status=413)
            await refusal(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise HTTPException(status_code=413, detail=_TOO_LARGE)
            return message

        await self._app(scope, counted, send)


class Measured:
    """Count and time what was answered, and give each request its place in a trace."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its ``traceparent`` in the state."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        span = continued(Headers(scope=scope).get("traceparent"))
        scope.setdefault("state", {})["traceparent"] = span.header
        started = time.perf_counter()
        # What fails without an answer is answered further out, where nothing is counted.
        status = _SERVER_ERROR

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._metrics.http_requests.labels(status=f"{status // 100}xx").inc()
            self._metrics.http_seconds.observe(time.perf_counter() - started)


def _local_tenant(headers: Headers) -> str | None:
    host = headers.get("host", "")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return DEFAULT_TENANT if name.lower() in _LOCAL_NAMES else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
