import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from gateway.http import build_app
from gateway.parts import GatewayParts
from telemetry.metrics import Metrics
from tests.unit.gateway.fakes import FakeClock, FakeInjections, FakeMemory, FakeReadiness

Open = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def open_client(metrics: Metrics) -> Open:
    """Open a client of the application over ``memory``, with parts replaced as told."""

    @asynccontextmanager
    async def opened(memory: FakeMemory | None = None, **replaced: Any) -> AsyncGenerator[httpx.AsyncClient]:
        memory = memory or FakeMemory()
        parts: dict[str, Any] = {
            "inject": FakeInjections(),
            "accept": memory.accept,
            "answers": memory,
            "forget": memory.forget,
            "readiness": FakeReadiness(),
            "metrics": metrics,
            "clock": FakeClock(),
            "pause": lambda _seconds: asyncio.sleep(0),
        }
        app = build_app(GatewayParts(**{**parts, **replaced}))
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8052") as client:
            yield client

    return opened
