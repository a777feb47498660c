"""PostgreSQL with pgvector as a child of this process, its data in one folder."""

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from service.embedded.children import (
    Child,
    Owner,
    Program,
    free_port,
    run_to_end,
    start_child,
    unprivileged_owner,
)
from service.embedded.errors import EmbeddedError
from service.embedded.orphans import clear_postmaster_file, stop_orphan
from service.embedded.postgres_binaries import PostgresBinaries, find_binaries

DATABASE: Final = "afterword"
USER: Final = "afterword"
_READY_S: Final = 60.0
_RETRY_S: Final = 0.2
_POLL_S: Final = 0.02
_PASSING: Final = ("pre-existing shared memory block", "Address already in use", "is another postmaster")
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A statement or a key's value in the log could be somebody's words.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


class EmbeddedPostgres:
    """One PostgreSQL server on loopback; the caller holds ``folder`` for itself."""

    def __init__(
        self, folder: Path, *, port: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._log = folder / "postgres.log"
        self._port = port or 0
        self._keeps_port = port is not None
        self._settings = _SETTINGS | dict(settings or {})
        self._owner: Owner | None = unprivileged_owner()
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """Give the process id of the running server."""
        return self._running().pid

    @property
    def url(self) -> str:
        """Give the address of the database ``afterword``, with its password."""
        password = quote(self._kept_password(), safe="")
        return f"postgresql://{USER}:{password}@127.0.0.1:{self._port}/{DATABASE}"

    async def start(self) -> None:
        """Create the data when missing, stop what a dead holder left running, and serve."""
        binaries = find_binaries(self._owner, self._folder / "binaries")
        await stop_orphan(self._data)
        if not self._data.exists():
            await self._create(binaries)
        try:
            async with asyncio.timeout(_READY_S):
                while not await self._serve(binaries):
                    await asyncio.sleep(_RETRY_S)
        except TimeoutError as exc:
            raise EmbeddedError(f"PostgreSQL was not ready in {_READY_S:.0f} s ({self._log})") from exc

    async def stop(self) -> None:
        """Disconnect everyone, write everything out and end."""
        if self._child is not None:
            await self._child.stop()
            self._child = None

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        self._running().kill()

    async def wait(self) -> None:
        """Wait for as long as the server lives, then raise."""
        code = await self._running().wait()
        raise EmbeddedError(f"the embedded PostgreSQL ended with code {code}, see {self._log}")

    def _running(self) -> Child:
        if self._child is None:
            raise EmbeddedError("the embedded PostgreSQL is not running")
        return self._child

    async def _serve(self, binaries: PostgresBinaries) -> bool:
        """Start the server once; return whether it serves, raise when trying again cannot help."""
        clear_postmaster_file(self._data)
        if not self._keeps_port:
            self._port = free_port()
        self._log.unlink(missing_ok=True)
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = (binaries.postgres, "-D", str(self._data), "-p", str(self._port), *options)
        # SIGINT is PostgreSQL's fast stop: clients are cut off, the data is left clean.
        child = start_child(
            self._program("PostgreSQL", command, stop_signal=signal.SIGINT, death_signal=signal.SIGINT)
        )
        try:
            while child.returncode is None and not self._says_ready(child.pid):
                await asyncio.sleep(_POLL_S)
        except asyncio.CancelledError:
            child.kill()
            raise
        if child.returncode is None:
            self._child, self._keeps_port = child, True
            return True
        child.kill()
        if any(reason in child.output_tail() for reason in _PASSING):
            return False
        raise child.failure("did not start")

    def _says_ready(self, pid: int) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        # The file's first line is the process id, its eighth and last the state.
        return lines[:1] == [str(pid)] and [line.strip() for line in lines[7:8]] == ["ready"]

    async def _create(self, binaries: PostgresBinaries) -> None:
        """Create data folder, user and database; they appear under their name complete or not at all."""
        for unfinished in self._folder.glob("new-*"):
            shutil.rmtree(unfinished)
        scratch = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        password = self._new_password()
        try:
            password_file = self._hand_over(scratch / "password", f"{password}\n")
            statement_file = self._hand_over(scratch / "statement", f"CREATE DATABASE {DATABASE};\n")
            self._give_to_owner(scratch)
            await run_to_end(self._initdb(binaries, scratch / "data", password_file))
            single = (binaries.postgres, "--single", "-D", str(scratch / "data"), "postgres")
            await run_to_end(self._program("CREATE DATABASE", single, stdin=statement_file))
            (scratch / "data").rename(self._data)
        finally:
            shutil.rmtree(scratch)

    def _initdb(self, binaries: PostgresBinaries, data: Path, password_file: Path) -> Program:
        return self._program(
            "initdb",
            (
                *(binaries.initdb, "-D", str(data), "-U", USER, f"--pwfile={password_file}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            ),
        )

    def _kept_password(self) -> str:
        path = self._folder / "password"
        try:
            return path.read_text()
        except FileNotFoundError as exc:
            raise EmbeddedError(f"{path} is missing: the database of this folder cannot be opened") from exc

    def _new_password(self) -> str:
        path = self._folder / "password"
        password = secrets.token_urlsafe(24)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(password)
        return password

    def _hand_over(self, path: Path, content: str) -> Path:
        path.touch(mode=0o600)
        path.write_text(content)
        self._give_to_owner(path)
        return path

    def _give_to_owner(self, path: Path) -> None:
        if self._owner is not None:
            os.chown(path, self._owner.uid, self._owner.gid)

    def _program(
        self,
        name: str,
        command: tuple[str, ...],
        *,
        stdin: Path = Path(os.devnull),
        stop_signal: signal.Signals = signal.SIGTERM,
        death_signal: signal.Signals = signal.SIGKILL,
    ) -> Program:
        return Program(
            name=name,
            command=command,
            output=self._log,
            cwd=self._folder,
            stdin=stdin,
            owner=self._owner,
            stop_signal=stop_signal,
            death_signal=death_signal,
        )
