"""Resident memory of parts of a running system, each with the processes that descend from it."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final, Self

import psutil

_EVERY_S: Final = 1.0


class MemoryMeter:
    """Notes the memory of each part every second, from its start to its end."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._parts = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._noted: list[tuple[float, dict[str, int]]] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def mean(self, name: str, share_from: float, share_to: float) -> float:
        """Return the mean megabytes of part ``name`` between two shares of the time."""
        start, end = self._noted[0][0], self._noted[-1][0]
        begin, stop = (start + share * (end - start) for share in (share_from, share_to))
        found = [noted[name] for moment, noted in self._noted if begin <= moment <= stop]
        return sum(found) / len(found) / (1 << 20)

    async def _run(self) -> None:
        while True:
            now = {name: _of_tree(process) for name, process in self._parts.items()}
            self._noted.append((time.monotonic(), now))
            await asyncio.sleep(_EVERY_S)


def _of_tree(root: psutil.Process) -> int:
    return sum(_of_one(process) for process in (root, *root.children(recursive=True)))


def _of_one(process: psutil.Process) -> int:
    try:
        resident: int = process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0
    return resident
