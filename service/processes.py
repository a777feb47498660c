"""Service processes that we start: bound to our life by a pipe, ready when they say so."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from domain.errors import AfterwordError

logger = logging.getLogger(__name__)

READY: Final = b"ready"
REPORT: Final = b"report "
_KILL_AFTER_S: Final = 5.0
_READ_BYTES: Final = 65_536
_LONGEST_LINE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a process tells of itself: its metrics as text, and which of its parts are not ready."""

    metrics: str
    unready: tuple[str, ...]

    def line(self) -> bytes:
        """Return the report as one line."""
        told = {"metrics": self.metrics, "unready": self.unready}
        return REPORT + json.dumps(told).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> "Report":
        """Read what ``line`` made."""
        told = json.loads(line.removeprefix(REPORT))
        return cls(metrics=told["metrics"], unready=tuple(told["unready"]))


class ProcessFailedError(AfterwordError):
    """A process of ours ended before it should."""


class ServiceProcess:
    """``afterword run`` as a child; it stops by itself when our end of its standard input closes.

    What it writes to standard output is read for as long as it lives: a full pipe would hold it up.
    """

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self.name = name
        self.report: Report | None = None
        self._serves = False
        self._heard = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(), name=f"output of {name}")

    @classmethod
    async def start(cls, arguments: Sequence[str], *, environment: Mapping[str, str]) -> "ServiceProcess":
        """Start ``afterword run`` in a session of its own, so that Ctrl-C reaches us alone."""
        command = (sys.executable, "-m", "service", "run", "--bound-to-stdin", *arguments)
        name = " ".join(arguments) or "all roles"
        return await cls.of(command, name=name, environment=environment)

    @classmethod
    async def of(
        cls, command: Sequence[str], *, name: str, environment: Mapping[str, str]
    ) -> "ServiceProcess":
        """Start ``command``, which says ``ready`` and ends with its standard input."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(process, name)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ready(self, *, within: float) -> None:
        """Return when the process says that it serves.

        Raises:
            ProcessFailedError: it ended, or said nothing ``within`` seconds.
        """
        try:
            async with asyncio.timeout(within):
                await self._heard.wait()
                code = None if self._serves else await self._process.wait()
        except TimeoutError:
            raise ProcessFailedError(
                f"the process of {self.name} did not serve within {within:.0f} s"
            ) from None
        if code is not None:
            raise ProcessFailedError(f"the process of {self.name} ended with code {code}")

    async def wait(self) -> int:
        """Return the exit code once the process has ended."""
        return await self._process.wait()

    async def stop(self, *, within: float) -> int:
        """Let the process finish its work; kill it when it takes longer than ``within`` seconds.

        It is killed as well when this call is cancelled: nothing is left behind.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(within):
                return await self._process.wait()
        except TimeoutError:
            logger.warning("the process of %s did not end in time and is killed", self.name)
        finally:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
            self._listening.cancel()
        async with asyncio.timeout(_KILL_AFTER_S):
            return await self._process.wait()

    async def _listen(self) -> None:
        output, line = self._process.stdout, b""
        try:
            while output is not None and (read := await output.read(_READ_BYTES)):
                *lines, line = (line + read).split(b"\n")
                line = line[-_LONGEST_LINE:]
                for one in lines:
                    self._take(one)
        finally:
            self._heard.set()

    def _take(self, line: bytes) -> None:
        if line.strip() == READY:
            self._serves = True
            self._heard.set()
        elif line.startswith(REPORT):
            self.report = Report.of(line)


def tell(report: Report) -> None:
    """Write ``report`` to standard output, where whoever started this process reads."""
    sys.stdout.buffer.write(report.line())
    sys.stdout.buffer.flush()


async def stdin_ended() -> None:
    """Return when standard input ends: whoever started us is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
