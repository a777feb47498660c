"""PostgreSQL servers that outlived their holder."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from service.embedded.errors import EmbeddedError

_POLL_S: Final = 0.05
_FAST_STOP_S: Final = 10.0
_IMMEDIATE_STOP_S: Final = 5.0


async def stop_orphan(data: Path) -> None:
    """Stop the server that still works on ``data``; the caller holds the folder, so it is nobody's."""
    pid = _postmaster(data)
    if pid is None:
        return
    for how, bound_s in ((signal.SIGINT, _FAST_STOP_S), (signal.SIGQUIT, _IMMEDIATE_STOP_S)):
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        if await _gone(pid, data, bound_s):
            return
    raise EmbeddedError(f"PostgreSQL (process {pid}) still works on {data} and does not stop")


def clear_postmaster_file(data: Path) -> None:
    """Remove the pid file of a server that is gone; a reused process id would block the start."""
    if _postmaster(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)


async def _gone(pid: int, data: Path, bound_s: float) -> bool:
    for _ in range(int(bound_s / _POLL_S)):
        if not _is_server(pid, data):
            return True
        await asyncio.sleep(_POLL_S)
    return False


def _postmaster(data: Path) -> int | None:
    try:
        first = (data / "postmaster.pid").read_text().splitlines()[0]
    except (FileNotFoundError, IndexError):
        return None
    pid = int(first)
    return pid if _is_server(pid, data) else None


def _is_server(pid: int, data: Path) -> bool:
    words = _command_line(pid)
    return bool(words) and "postgres" in words and str(data) in words


def _command_line(pid: int) -> str:
    process = Path("/proc") / str(pid)
    if Path("/proc/self").exists():
        try:
            return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    listing = subprocess.run(
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listing.stdout
