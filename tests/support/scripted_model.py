"""A language model for tests and benchmarks: real wire formats on a real socket, in a process of its own.

Answers are prepared beforehand: to a conversation of ``benchmark_talks`` it answers with the five facts
that the user stated. Faults are played first, in their order.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Final, Self

import httpx

from tests.support.model_script import NOTHING, Plan, Step
from tests.support.process_trees import resume_tree, suspend_tree
from tests.support.surroundings import ROOT

_PROCESS: Final = "tests.support.model_process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the model was asked; ``files`` are the numbers of the conversations, in the order of the calls."""

    calls: int
    files: tuple[int, ...]
    most_at_once: int
    by_path: Mapping[str, int]
    bodies: tuple[str, ...]
    tokens: tuple[str, ...]


class ScriptedModel:
    """Runs the model's process: ``async with ScriptedModel(...) as model: model.url``."""

    def __init__(
        self,
        *,
        steps: Sequence[Step] = (),
        latency: float = 0.0,
        otherwise: str = NOTHING,
        refused_formats: Sequence[str] = (),
        dimensions: int = 512,
    ) -> None:
        self._plan = Plan(
            latency=latency,
            steps=tuple(steps),
            otherwise=otherwise,
            refused_formats=tuple(refused_formats),
            dimensions=dimensions,
        )
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the model's process, to subtract its CPU."""
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Start it, on the port of before where it had one."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _PROCESS,
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        plan = replace(self._plan, port=self._port)
        self._process.stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        self._port = int(await self._process.stdout.readline())

    async def kill(self) -> None:
        """SIGKILL it: whoever calls it is refused."""
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()

    def freeze(self) -> None:
        """SIGSTOP it: whoever calls it waits."""
        suspend_tree(self.pid)

    def thaw(self) -> None:
        """SIGCONT it."""
        resume_tree(self.pid)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.communicate()

    async def seen(self) -> Seen:
        """Return what the model was asked so far."""
        async with httpx.AsyncClient(trust_env=False) as client:
            raw = (await client.get(f"{self.url}/seen")).json()
        return Seen(
            calls=raw["calls"],
            files=tuple(raw["files"]),
            most_at_once=raw["most_at_once"],
            by_path=raw["by_path"],
            bodies=tuple(raw["bodies"]),
            tokens=tuple(raw["tokens"]),
        )

    async def plays(self, *steps: Step) -> None:
        """Play ``steps`` from the next call on, instead of what was still to come."""
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await client.post(f"{self.url}/steps", json=[asdict(step) for step in steps])
        assert response.status_code == 200
