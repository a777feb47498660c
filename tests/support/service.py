"""The service as others run it: a process that is told where broker and database are, and says `ready`."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from schemas.topics import Topics
from service.embedded.children import Child, Program, free_port, start_child
from tests.support.kafka import KafkaServer
from tests.support.process_trees import resume_tree, suspend_tree

# What keeps a test from waiting: a dead member is noticed soon, and six partitions are enough.
QUICK: Final[Mapping[str, str]] = {
    "AFTERWORD_PARTITIONS": "6",
    "AFTERWORD_SESSION_TIMEOUT_MS": "6000",
    "AFTERWORD_HEARTBEAT_MS": "500",
}
ON_TANSU: Final[Mapping[str, str]] = {
    **QUICK,
    "AFTERWORD_SESSION_TIMEOUT_MS": "2000",
    "AFTERWORD_KAFKA_IDEMPOTENCE": "false",
    "AFTERWORD_FETCH_WAIT_MS": "3",
}
_POLL_S: Final = 0.02
_PROTOCOL: Final = re.compile(r"^postgres(ql)?://")


class ServiceFailedError(AssertionError):
    """The service ended, or did not do in time what it promises."""


class RunningService:
    """``afterword run`` by its contract; ``folder`` takes its output. It dies with the test run.

    ``launcher`` is the module that its starts run, with what comes before ``arguments``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kafka: KafkaServer,
        database_url: str,
        topic_prefix: str,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        assert _PROTOCOL.match(database_url)
        folder.mkdir(parents=True, exist_ok=True)
        self.kafka = kafka.bootstrap
        self.database_url = database_url
        self.topics = Topics(topic_prefix)
        self.starts = 0
        self._folder = folder
        self.launcher: Sequence[str] = ("service", "run")
        self._arguments = tuple(arguments)
        self._environment = {
            "AFTERWORD_KAFKA": kafka.bootstrap,
            "AFTERWORD_DATABASE_URL": database_url,
            "AFTERWORD_TOPIC_PREFIX": topic_prefix,
            "HOME": str(folder),
            **(ON_TANSU if kafka.kind == "tansu" else QUICK),
            **(settings or {}),
        }
        self._child: Child | None = None
        self._known: list[psutil.Process] = []
        self._port = 0

    @property
    def http(self) -> str:
        """The address of its HTTP."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the process that was started; its children are not in it."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """How it ended, or None while it runs."""
        return self._running().returncode

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or self._child is None:
            self.clear()
            return
        try:
            code = await self.terminate()
        finally:
            self.clear()
        if code != 0:
            raise self._failure(f"ended with {code} on SIGTERM")

    async def start(self, *, within: float = 60.0) -> None:
        """Start it and return when it says that it is ready."""
        self.spawn()
        await self.ready(within=within)

    def spawn(self) -> None:
        """Start it and do not wait."""
        self.starts += 1
        self._port = free_port()
        # The shell parts standard output, which is a contract, from the logs.
        script = f'exec "$0" "$@" >"{self._stdout}"'
        self._stdout.unlink(missing_ok=True)
        self._child = start_child(
            Program(
                name="afterword run",
                command=("/bin/sh", "-c", script, sys.executable, "-m", *self.launcher, *self._arguments),
                output=self._stderr,
                cwd=self._folder,
                environment={**self._environment, "MEMORY_PORT": str(self._port)},
            )
        )

    async def ready(self, *, within: float = 60.0) -> None:
        """Return when it says that it is ready."""
        try:
            async with asyncio.timeout(within):
                while "ready" not in self.output():
                    if self.returncode is not None:
                        raise self._failure(f"ended with {self.returncode} before it was ready")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise self._failure(f"was not ready within {within} s") from None
        self._known += self.tree()

    def output(self) -> list[str]:
        """Return the lines of its standard output."""
        return self._stdout.read_text().splitlines() if self._stdout.exists() else []

    def logs(self) -> str:
        """Return what all its starts wrote to standard error."""
        return self._stderr.read_text(errors="replace")

    def tree(self) -> list[psutil.Process]:
        """Return its process and all that descend from it."""
        try:
            main = psutil.Process(self.pid)
            return [main, *main.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """``kill -9`` of the process that was started; what it started has to see to itself."""
        self._known += self.tree()
        os.kill(self.pid, signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP it with all that descends from it."""
        suspend_tree(self.pid)

    def thaw(self) -> None:
        """SIGCONT what was frozen."""
        resume_tree(self.pid)

    async def wait(self, *, within: float = 40.0) -> int:
        """Return the exit code once it has ended."""
        try:
            async with asyncio.timeout(within):
                return await self._running().wait(_POLL_S)
        except TimeoutError:
            raise self._failure(f"did not end within {within} s") from None

    async def kill_and_start(self, *, within: float = 60.0) -> None:
        """Kill it in the middle of everything and start it again."""
        self.kill()
        await self.wait()
        await self.start(within=within)

    async def terminate(self, *, within: float = 40.0) -> int:
        """Send SIGTERM and return the exit code."""
        self._known += self.tree()
        os.kill(self.pid, signal.SIGTERM)
        return await self.wait(within=within)

    async def is_alone(self, *, within: float = 10.0) -> bool:
        """Say whether everything that it ever started has ended ``within`` seconds, but what runs now."""
        _, alive = await asyncio.to_thread(psutil.wait_procs, self._past(), within)
        return not alive

    def clear(self) -> None:
        """Leave nothing running."""
        if self._child is not None:
            self._known += self.tree()
            self._child.kill()
            self._child = None
        for process in self._known:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._known = []

    @property
    def _stdout(self) -> Path:
        return self._folder / f"stdout-{self.starts}"

    @property
    def _stderr(self) -> Path:
        return self._folder / "stderr"

    def _past(self) -> list[psutil.Process]:
        now = {process.pid for process in self.tree()}
        return [process for process in self._known if process.pid not in now]

    def _running(self) -> Child:
        if self._child is None:
            raise ServiceFailedError("the service was not started")
        return self._child

    def _failure(self, what: str) -> ServiceFailedError:
        return ServiceFailedError(f"afterword run {what}:\n{self.logs()[-4000:]}")
