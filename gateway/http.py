"""The HTTP application: one thin layer over the use cases."""

import asyncio
from typing import Any, Final

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from gateway.edge import BearerTokens, BodyLimit, Measured
from gateway.faults import add_fault_handlers
from gateway.memory_routes import memory_router
from gateway.parts import ComponentState, GatewayParts, Readiness
from telemetry.exposition import exposition

_READY_WITHIN_S: Final = 3.0
_NOT_READY: Final = 503


def build_app(parts: GatewayParts) -> FastAPI:
    """Return the application; nothing is started and nothing outside is touched."""
    app = FastAPI(title="Afterword", version=parts.version or "0", docs_url="/docs", redoc_url=None)
    add_fault_handlers(app)
    app.include_router(memory_router(parts))
    _add_service_routes(app, parts)
    # The last one added is the first one passed.
    app.add_middleware(BodyLimit, limit=parts.body_limit)
    app.add_middleware(BearerTokens, tokens=parts.tokens)
    app.add_middleware(Measured, metrics=parts.metrics)
    return app


def _add_service_routes(app: FastAPI, parts: GatewayParts) -> None:
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
