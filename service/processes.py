"""Service processes that we start: bound to our life by a pipe, ready when they say so."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from domain.errors import AfterwordError

READY: Final = b"ready"
_KILL_AFTER_S: Final = 5.0


class ProcessFailedError(AfterwordError):
    """A process of ours ended before it should."""


class ServiceProcess:
    """``afterword run`` as a child; it stops by itself when our end of its standard input closes."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self.name = name

    @classmethod
    async def start(cls, arguments: Sequence[str], *, environment: Mapping[str, str]) -> "ServiceProcess":
        """Start ``afterword run`` in a session of its own, so that Ctrl-C reaches us alone."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "service",
            "run",
            "--bound-to-stdin",
            *arguments,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(process, " ".join(arguments) or "all roles")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ready(self, *, within: float) -> None:
        """Return when the process says that it serves.

        Raises:
            ProcessFailedError: it ended, or said nothing ``within`` seconds.
        """
        output = self._process.stdout
        if output is None:
            raise ProcessFailedError(f"the process of {self.name} has no output")
        try:
            async with asyncio.timeout(within):
                async for line in output:
                    if line.strip() == READY:
                        return
        except TimeoutError:
            raise ProcessFailedError(
                f"the process of {self.name} did not serve within {within:.0f} s"
            ) from None
        raise ProcessFailedError(f"the process of {self.name} ended with code {await self._process.wait()}")

    async def wait(self) -> int:
        """Return the exit code once the process has ended."""
        return await self._process.wait()

    async def stop(self, *, within: float) -> int:
        """Let the process finish its work; kill it when it takes longer than ``within`` seconds."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(within):
                return await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            async with asyncio.timeout(_KILL_AFTER_S):
                return await self._process.wait()


async def stdin_ended() -> None:
    """Return when standard input ends: whoever started us is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
