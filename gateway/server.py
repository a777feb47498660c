"""Serve the HTTP application inside a loop that somebody else runs."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


class _Uvicorn(uvicorn.Server):
    """A server that leaves the signals of the process alone and says when it listens."""

    def __init__(self, config: uvicorn.Config, started: asyncio.Event) -> None:
        super().__init__(config)
        self._listening = started

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install nothing: whoever runs the loop decides when to stop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then say so."""
        await super().startup(sockets)
        self._listening.set()


class HttpServer:
    """One HTTP server; port 0 takes a free port, which ``port`` tells once it is bound."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, drain_s: float = 5.0) -> None:
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self.started = asyncio.Event()
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(drain_s)),
        )
        self._server = _Uvicorn(config, self.started)

    @property
    def host(self) -> str:
        """The address that is listened on."""
        return self._host

    @property
    def port(self) -> int:
        """The port that is listened on, or asked for until then."""
        return self._port

    def bind(self) -> None:
        """Take the port, so that a port in use is an error of the start.

        Raises:
            OSError: the address or the port cannot be had.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._socket = socket.create_server((self._host, self._port), family=family, backlog=512)
        self._port = int(self._socket.getsockname()[1])

    async def serve(self) -> None:
        """Answer requests until `stop` is called and those in hand are answered.

        Raises:
            OSError: the address or the port cannot be had.
        """
        if self._socket is None:
            self.bind()
        taken = self._socket
        if taken is None:
            return
        try:
            await self._server.serve(sockets=[taken])
        finally:
            taken.close()
            self._socket = None

    def stop(self) -> None:
        """Take no further requests; `serve` returns when those in hand are answered or their time is up."""
        self._server.should_exit = True
