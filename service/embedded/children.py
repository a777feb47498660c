"""Processes of our own that die with us and write to a file, never to our standard output."""

import asyncio
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from service.embedded.errors import EmbeddedError

_EXEC_CHILD: Final = Path(__file__).with_name("exec_child.py")
_POLL_S: Final = 0.01
_WATCH_S: Final = 0.25
_TAIL_BYTES: Final = 4096
_MINIMAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The unprivileged user that a child runs as."""

    uid: int
    gid: int


def unprivileged_owner() -> Owner | None:
    """Name the user to drop to under root; ``None`` for a plain user, who needs no other."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Owner(uid=entry.pw_uid, gid=entry.pw_gid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a child runs, where, and how it ends.

    The child gets ``environment`` and nothing of ours, so that no secret of ours reaches it.
    """

    name: str
    command: tuple[str, ...]
    output: Path
    cwd: Path
    stdin: Path = Path(os.devnull)
    owner: Owner | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL


class Child:
    """A running program; it gets the program's death signal when this process dies in any way."""

    def __init__(self, program: Program, process: "subprocess.Popen[bytes]", pipe: int) -> None:
        self._program = program
        self._process = process
        self._pipe = pipe

    @property
    def name(self) -> str:
        """Name the program in messages."""
        return self._program.name

    @property
    def pid(self) -> int:
        """Give the process id of the program itself."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Give the exit code, or ``None`` while it runs."""
        return self._process.poll()

    def output_tail(self) -> str:
        """Return the last lines that the program wrote."""
        with self._program.output.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().decode(errors="replace").strip()

    def failure(self, what: str) -> EmbeddedError:
        """Make an error of one line that quotes the last line the program wrote.

        It is for programs that have not served anybody yet: later lines could hold somebody's words.
        """
        last = self.output_tail().rpartition("\n")[2] or "it wrote nothing"
        return EmbeddedError(f"{self.name} {what}: {last} ({self._program.output})")

    def kill(self) -> None:
        """Kill the program and every process of its session at once, and reap it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close_pipe()

    async def stop(self, bound_s: float = 10.0) -> None:
        """Ask the program to end; kill it after ``bound_s``, or at once when cancelled."""
        if self._process.poll() is None:
            self._process.send_signal(self._program.stop_signal)
        try:
            async with asyncio.timeout(bound_s):
                await self.wait(_POLL_S)
        except TimeoutError:
            pass
        finally:
            self.kill()

    async def wait(self, interval_s: float = _WATCH_S) -> int:
        """Return the exit code once the program has ended."""
        while (code := self._process.poll()) is None:
            await asyncio.sleep(interval_s)
        return code

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def start_child(program: Program, *, by_pipe: bool = sys.platform != "linux") -> Child:
    """Start ``program``; call it from the main thread.

    Linux ties a child's life to the thread that started it, so a worker thread that ends would take
    the child with it. ``by_pipe`` chooses the portable way of binding the child's life to ours.
    """
    if threading.current_thread() is not threading.main_thread():
        raise EmbeddedError("embedded processes are started from the main thread")
    watched, held = os.pipe() if by_pipe else (-1, -1)
    owner = program.owner
    numbers = (
        program.death_signal,
        owner.uid if owner else -1,
        owner.gid if owner else -1,
        os.getpid(),
        watched,
    )
    try:
        with program.output.open("ab") as output, program.stdin.open("rb") as stdin:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _EXEC_CHILD, *(str(int(n)) for n in numbers), *program.command],
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=program.cwd,
                env={"PATH": _MINIMAL_PATH, "LC_ALL": "C", **program.environment},
                pass_fds=(watched,) if by_pipe else (),
                # Ctrl-C in the terminal reaches us alone; we stop the children in order.
                start_new_session=True,
            )
    finally:
        if by_pipe:
            os.close(watched)
    return Child(program, process, held)


async def run_to_end(program: Program, bound_s: float = 60.0) -> None:
    """Run ``program`` to its end; raise when it fails or takes longer than ``bound_s``."""
    child = start_child(program)
    try:
        async with asyncio.timeout(bound_s):
            code = await child.wait(_POLL_S)
    except TimeoutError as exc:
        raise child.failure(f"did not end in {bound_s:.0f} s") from exc
    finally:
        child.kill()
    if code != 0:
        raise child.failure(f"ended with code {code}")


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
