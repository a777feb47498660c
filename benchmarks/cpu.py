"""CPU of the parts of a running system, each with the processes that descend from it."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import psutil

_LOOP: Final = 480_000  # about 5 ms
_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """CPU seconds by part, and the share of all cores that nobody used."""

    by_part: Mapping[str, float]
    idle: float


class CpuMeter:
    """Tells what each part used between its start and ``read``."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._parts = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._before = self._now()
        self._cores = psutil.cpu_times()

    def read(self) -> Used:
        """Return what was used since the start."""
        now, cores = self._now(), psutil.cpu_times()
        whole = sum(cores) - sum(self._cores)
        return Used(
            by_part={name: now[name] - self._before[name] for name in now},
            idle=(cores.idle - self._cores.idle) / whole if whole else 0.0,
        )

    def _now(self) -> dict[str, float]:
        return {name: _of_tree(process) for name, process in self._parts.items()}


def _of_tree(root: psutil.Process) -> float:
    return sum(_of_one(process) for process in (root, *root.children(recursive=True)))


def _of_one(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        # What it used is its parent's once it has been reaped.
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


class Drift:
    """Runs a fixed loop every so often: what it takes tells how fast the machine is just now."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def milliseconds(self) -> float:
        """The CPU that the loop took, on average."""
        return 1_000 * sum(self._taken) / len(self._taken) if self._taken else 0.0

    async def _run(self) -> None:
        while True:
            start = time.thread_time()
            for _ in range(_LOOP):
                pass
            self._taken.append(time.thread_time() - start)
            await asyncio.sleep(_EVERY_S)
