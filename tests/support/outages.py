"""A door in front of a model: closed, whoever calls is refused, as by a machine that is away."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class ModelDoor:
    """Passes bytes to and from ``target``, a URL; keeps its own port over ``close`` and ``open``."""

    def __init__(self, target: str) -> None:
        place = urlsplit(target)
        self._target = (place.hostname or "127.0.0.1", place.port or 80)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The address to call."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Let calls through."""
        self._server = await asyncio.start_server(self._passed, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse calls, and cut those that are under way."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._passing):
            writer.transport.abort()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        ends = {writer, back}
        self._passing |= ends
        try:
            await asyncio.gather(_copied(reader, back), _copied(there, writer))
        finally:
            self._passing -= ends


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        return
    finally:
        writer.close()
