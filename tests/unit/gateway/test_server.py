import asyncio
import signal
import socket

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gateway.server import HttpServer

pytestmark = pytest.mark.anyio


class SlowApp:
    """Answers after ``answer`` is set, and says in ``asked`` that a request came."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        await self.answer.wait()
        await PlainTextResponse("done")(scope, receive, send)


async def test_a_free_port_is_taken_and_told_and_answered_on() -> None:
    app = SlowApp()
    app.answer.set()
    server = HttpServer(app, host="127.0.0.1", port=0)

    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        await asyncio.wait_for(server.started.wait(), 5)
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"http://127.0.0.1:{server.port}/")
        server.stop()

    assert server.port != 0
    assert answer.text == "done"


async def test_a_request_in_hand_is_answered_before_the_end() -> None:
    app = SlowApp()
    server = HttpServer(app, host="127.0.0.1", port=0)

    async with asyncio.TaskGroup() as group, httpx.AsyncClient() as client:
        serving = group.create_task(server.serve())
        await asyncio.wait_for(server.started.wait(), 5)
        asking = group.create_task(client.get(f"http://127.0.0.1:{server.port}/"))
        await asyncio.wait_for(app.asked.wait(), 5)
        server.stop()
        await asyncio.sleep(0.2)
        assert not serving.done()
        app.answer.set()
        answer = await asking

    assert answer.text == "done"


async def test_the_signals_of_the_process_are_left_alone() -> None:
    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    server = HttpServer(SlowApp(), host="127.0.0.1", port=0)

    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        await asyncio.wait_for(server.started.wait(), 5)
        during = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
        server.stop()

    assert during == before


async def test_a_port_in_use_is_an_error_and_not_the_end_of_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = HttpServer(SlowApp(), host="127.0.0.1", port=taken.getsockname()[1])

        with pytest.raises(OSError, match="in use"):
            await server.serve()

    assert not server.started.is_set()
