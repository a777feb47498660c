"""The parent's end of an embedder's process: start it, exchange frames with it, end it."""

import asyncio
import json
import struct
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Final

from domain.errors import EmbedderUnavailableError

DEFAULT_COMMAND: Final = (sys.executable, "-m", "clients.embeddings.child")

_LENGTH: Final = struct.Struct("<I")
_LONGEST_FRAME: Final = 64 * 1024 * 1024
_LAST_SECONDS: Final = 2.0


class ChildProcess:
    """One embedder process at a time; it is started when it is needed and none runs."""

    def __init__(self, *, command: Sequence[str], start_seconds: float, answer_seconds: float) -> None:
        self._command = tuple(command)
        self._start_seconds = start_seconds
        self._answer_seconds = answer_seconds
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, if one runs."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process unless one runs, and wait until its model is loaded.

        Raises:
            EmbedderUnavailableError: it did not come up.
        """
        if self._process is not None and self._process.returncode is None:
            return
        await self.stop()
        try:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
        except OSError as exc:
            raise EmbedderUnavailableError("the embedder's process cannot be started") from exc
        await self._exchange(None, self._start_seconds)

    async def ask(self, texts: Sequence[str]) -> bytes:
        """Return the raw vectors of ``texts``; a process that fails, or is cut off, is ended.

        Raises:
            EmbedderUnavailableError: the process died or did not answer.
        """
        await self.start()
        return await self._exchange(json.dumps(texts).encode(), self._answer_seconds)

    async def stop(self) -> None:
        """End the process: by the end of its input, and by force if that takes too long."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await process.communicate()
        except TimeoutError:
            self._kill(process)
            await process.communicate()

    async def _exchange(self, body: bytes | None, seconds: float) -> bytes:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EmbedderUnavailableError("the embedder's process does not run")
        finished = False
        try:
            async with asyncio.timeout(seconds):
                answer = await _swap(process.stdin, process.stdout, body)
            finished = True
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as exc:
            raise EmbedderUnavailableError("the embedder's process died or did not answer") from exc
        finally:
            if not finished:
                # What it would still say belongs to a question that nobody waits for.
                self._kill(process)
        return answer

    @staticmethod
    def _kill(process: Process) -> None:
        if process.returncode is None:
            process.kill()


async def _swap(source: asyncio.StreamWriter, sink: asyncio.StreamReader, body: bytes | None) -> bytes:
    """Write a frame, unless it is only to be listened, and read the answer."""
    if body is not None:
        source.write(_LENGTH.pack(len(body)) + body)
        await source.drain()
    size: int = _LENGTH.unpack(await sink.readexactly(_LENGTH.size))[0]
    if size > _LONGEST_FRAME:
        raise OSError("a frame of impossible length")
    return await sink.readexactly(size)
