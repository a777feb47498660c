"""The HTTP application: one thin layer over the use cases."""

import asyncio
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.edge import BearerTokens, BodyLimit, Measured
from gateway.faults import add_fault_handlers, answer
from gateway.memory_routes import memory_router
from gateway.parts import ComponentState, EdgeParts, GatewayParts, Readiness
from telemetry.exposition import exposition

_READY_WITHIN_S: Final = 3.0
_NOT_READY: Final = 503
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_STARTING: Final = "the service is starting; /ready says what it waits for"


def build_app(parts: GatewayParts) -> FastAPI:
    """Return the application; nothing is started and nothing outside is touched."""
    app = _service_app(parts)
    app.include_router(memory_router(parts))
    return _behind_its_edge(app, parts)


def build_starting_app(parts: EdgeParts) -> FastAPI:
    """Return what answers until database and broker are there: how the service is, and else 503."""
    app = _service_app(parts)

    @app.api_route("/{path:path}", methods=_METHODS, include_in_schema=False)
    async def starting(request: Request) -> JSONResponse:
        return answer("storage_unavailable", _STARTING, path=request.url.path, retryable=True)

    return _behind_its_edge(app, parts)


class Door:
    """The one application of a server: what it passes requests to can be exchanged while it serves."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application of now."""
        await self.app(scope, receive, send)


def _service_app(parts: EdgeParts) -> FastAPI:
    app = FastAPI(title="Afterword", version=parts.version or "0", docs_url="/docs", redoc_url=None)
    add_fault_handlers(app)
    _add_service_routes(app, parts)
    return app


def _behind_its_edge(app: FastAPI, parts: EdgeParts) -> FastAPI:
    # The last one added is the first one passed.
    app.add_middleware(BodyLimit, limit=parts.body_limit)
    app.add_middleware(BearerTokens, tokens=parts.tokens)
    app.add_middleware(Measured, metrics=parts.metrics)
    return app


def _add_service_routes(app: FastAPI, parts: EdgeParts) -> None:
    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """Say that the process answers; nothing else is asked."""
        return {"service": "memory_service", "status": "ok"}

    @app.get("/ready", tags=["service"], responses={_NOT_READY: {"description": "A part is not ready."}})
    async def ready() -> JSONResponse:
        """Say whether every part can do its work."""
        states = await _states(parts.readiness)
        is_ready = all(state.is_ready for state in states.values())
        body: dict[str, Any] = {
            "ready": is_ready,
            "components": {
                name: {"ready": state.is_ready, "detail": state.detail} for name, state in states.items()
            },
        }
        return JSONResponse(body, status_code=200 if is_ready else _NOT_READY)

    @app.get("/metrics", tags=["service"])
    async def metrics() -> Response:
        """Give the metrics in Prometheus' text format."""
        return Response(
            exposition(parts.metrics.registry, parts.other_metrics()),
            headers={"content-type": CONTENT_TYPE_LATEST},
        )

    @app.get("/asyncapi", tags=["service"])
    async def asyncapi() -> JSONResponse:
        """Give the AsyncAPI document of the topics."""
        return JSONResponse(dict(parts.asyncapi))


async def _states(readiness: Readiness) -> dict[str, ComponentState]:
    try:
        async with asyncio.timeout(_READY_WITHIN_S):
            return dict(await readiness())
    except TimeoutError:
        return {"service": ComponentState(is_ready=False, detail="no answer in time")}
