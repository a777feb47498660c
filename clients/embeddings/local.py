"""The embedder of this machine: the multilingual Universal Sentence Encoder in a child process.

In this process it would hold the event loop for milliseconds a batch. What arrives while a batch is computed
goes with the next one; a small cap keeps conversations from moving in one wave.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clients.embeddings.child_process import DEFAULT_COMMAND, ChildProcess
from clients.embeddings.vectors import embeddable, split
from domain.errors import EmbedderUnavailableError
from domain.ports import EmbedderInfo

USE_MULTILINGUAL: Final = EmbedderInfo(
    model="use-multilingual-v3", dimensions=512, near_duplicate_distance=0.12, max_chars=2_000
)

_RESTART_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """How many jobs go in one batch: ``jobs``, and ``busy_jobs`` when more than ``backlog`` wait.

    A batch ends before it exceeds ``texts`` a job; a job of many texts is cut into pieces of ``piece``.
    """

    jobs: int = 2
    busy_jobs: int = 16
    backlog: int = 16
    texts_per_job: int = 5
    piece: int = 32


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    texts: list[str]
    vectors: "asyncio.Future[list[bytes]]"


class LocalEmbedder:
    """Embeds by a child process, from ``start`` to ``aclose``; implements ``domain.ports.Embedder``."""

    def __init__(
        self,
        *,
        info: EmbedderInfo = USE_MULTILINGUAL,
        command: Sequence[str] = DEFAULT_COMMAND,
        batch: BatchSize | None = None,
        start_seconds: float = 60.0,
        answer_seconds: float = 30.0,
    ) -> None:
        self._info = info
        self._batch = batch or BatchSize()
        self._child = ChildProcess(
            command=command, start_seconds=start_seconds, answer_seconds=answer_seconds
        )
        self._waiting: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None

    @property
    def info(self) -> EmbedderInfo:
        """The model behind the vectors."""
        return self._info

    @property
    def child_pid(self) -> int | None:
        """The id of the child process, if one runs."""
        return self._child.pid

    async def start(self) -> None:
        """Start the child and wait until its model is loaded.

        Raises:
            EmbedderUnavailableError: it did not come up.
        """
        if self._runner is None:
            await self._child.start()
            self._runner = asyncio.create_task(self._run(), name="local embedder")

    async def aclose(self) -> None:
        """End the child; who still waits gets EmbedderUnavailableError."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await runner
        await self._child.stop()

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, little-endian float16.

        Raises:
            EmbedderUnavailableError: the child died meanwhile, or this embedder is not started.
        """
        if self._runner is None or self._runner.done():
            raise EmbedderUnavailableError("the embedder does not run")
        clean = embeddable(texts, max_chars=self._info.max_chars)
        size = self._batch.piece
        jobs = [self._enqueued(clean[start : start + size]) for start in range(0, len(clean), size)]
        parts = await asyncio.gather(*(job.vectors for job in jobs))
        return [vector for part in parts for vector in part]

    def _enqueued(self, texts: list[str]) -> _Job:
        job = _Job(texts, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        return job

    async def _run(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while jobs := self._next_batch():
                    await self._flush(jobs)
        finally:
            self._fail(list(self._waiting))
            self._waiting.clear()

    def _next_batch(self) -> list[_Job]:
        """Take what goes together now; nobody waits any more for a job that was cancelled."""
        jobs: list[_Job] = []
        count = self._batch.busy_jobs if len(self._waiting) > self._batch.backlog else self._batch.jobs
        room = count * self._batch.texts_per_job
        while self._waiting and len(jobs) < count:
            if jobs and len(self._waiting[0].texts) > room:
                break
            job = self._waiting.popleft()
            if not job.vectors.done():
                jobs.append(job)
                room -= len(job.texts)
        return jobs

    async def _flush(self, jobs: list[_Job]) -> None:
        texts = [text for job in jobs for text in job.texts]
        answered = False
        try:
            raw = await self._child.ask(texts)
            vectors = split(raw, count=len(texts), dimensions=self._info.dimensions)
            answered = True
        except EmbedderUnavailableError:
            self._fail(jobs)
            # A child that dies at once must not be started in a tight loop.
            await asyncio.sleep(_RESTART_SECONDS)
            return
        finally:
            if not answered:
                self._fail(jobs)
        self._answer(jobs, vectors)

    @staticmethod
    def _answer(jobs: list[_Job], vectors: list[bytes]) -> None:
        start = 0
        for job in jobs:
            end = start + len(job.texts)
            if not job.vectors.done():
                job.vectors.set_result(vectors[start:end])
            start = end

    @staticmethod
    def _fail(jobs: list[_Job]) -> None:
        for job in jobs:
            if not job.vectors.done():
                job.vectors.set_exception(EmbedderUnavailableError("the embedder's process is away"))
