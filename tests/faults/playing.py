"""Play a corpus while something disturbs the service, drain, look, and say what was broken."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from aiokafka.errors import KafkaError

from tests.faults.corpus import Corpus
from tests.faults.model import model
from tests.faults.order import second_sendings
from tests.faults.promises import broken_promises
from tests.faults.scene import ALONE, Cast, Ground, Scene, scene
from tests.faults.snapshot import drained, left_behind, remembered, snapshot
from tests.support.publishing import Outgoing, Publisher, publishing
from tests.support.tables import Row, Tables, looking

_REQUEST_MS: Final = 60_000
_AGAIN_S: Final = 0.5

Memory = Mapping[str, Sequence[Row]]
Disturb = Callable[[Scene, Sequence[asyncio.Event]], Awaitable[None]]
"""Disturbs the service, and sets each event when the next part of the corpus is to be sent."""


class Playing:
    """One playing of ``corpus``, in ``parts`` before its last, and what was found in it."""

    def __init__(
        self, ground: Ground, corpus: Corpus, cast: Cast, *, folder: Path, parts: int, drain_s: float = 120.0
    ) -> None:
        self._ground = ground
        self._corpus = corpus
        self._cast = cast
        self._parts = parts
        self._drain_s = drain_s
        self.folder = folder
        self.broken: list[str] = []
        self.letters = 0
        self.repeats = 0

    async def play(self, undisturbed: Memory, disturb: Disturb) -> None:
        """Play it; ``broken`` says afterwards what was wrong."""
        async with (
            model(self._corpus) as slow,
            scene(self._ground, slow, self._cast, folder=self.folder) as on,
        ):
            await self._disturbed(on, disturb)
            async with looking(on.database_url) as tables:
                await self._look(on, tables, undisturbed)
                self.broken += await on.end()
                self.broken += [] if self.broken else await left_behind(tables)
            self.broken += on.broken

    async def _disturbed(self, on: Scene, disturb: Disturb) -> None:
        """Send everything, a part whenever it is due and the last one at the end."""
        parts = _parts(self._corpus.records(on.topics), self._parts + 1)
        due = [asyncio.Event() for _ in parts]
        async with (
            publishing(on.kafka, request_timeout_ms=_REQUEST_MS) as publisher,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(_sent(publisher, parts, due))
            await disturb(on, due[:-1])
            for event in due:
                event.set()

    async def _look(self, on: Scene, tables: Tables, undisturbed: Memory) -> None:
        self.broken += await drained(on, tables, len(self._corpus.sessions), within=self._drain_s)
        seen = await snapshot(on, tables, self._corpus.good)
        self.letters, self.repeats = len(seen.rows["letters"]), second_sendings(seen)
        self.broken += broken_promises(seen, self._corpus, undisturbed)
        if self.broken:
            seen.save(self.folder / "seen")


async def undisturbed(ground: Ground, corpus: Corpus, *, within: float = 120.0) -> Memory:
    """Return what is remembered of the sessions of ``corpus`` when each comes once and nothing fails."""
    with tempfile.TemporaryDirectory(prefix="afterword-faults-") as folder:
        async with (
            model() as quick,
            scene(ground, quick, ALONE, folder=Path(folder)) as on,
            looking(on.database_url) as tables,
        ):
            async with publishing(on.kafka) as publisher:
                await publisher.send(*corpus.undisturbed(on.topics))
            await tables.settled(len(corpus.good), within=within)
            return await remembered(tables, corpus.good)


async def _sent(
    publisher: Publisher, parts: Sequence[Sequence[Outgoing]], due: Sequence[asyncio.Event]
) -> None:
    """Send each of ``parts`` when it is due. While the broker is down, records wait in the producer."""
    async with asyncio.TaskGroup() as group:
        for part, event in zip(parts, due, strict=True):
            await event.wait()
            group.create_task(_safely_sent(publisher, part))


async def _safely_sent(publisher: Publisher, part: Sequence[Outgoing]) -> None:
    """Send ``part``, and all of it again when an outage was too long for the producer: twice is allowed."""
    while True:
        try:
            await publisher.send(*part)
        except KafkaError:
            await asyncio.sleep(_AGAIN_S)
        else:
            return


def _parts(records: Sequence[Outgoing], count: int) -> list[Sequence[Outgoing]]:
    size = -(-len(records) // count)
    return [records[start * size : (start + 1) * size] for start in range(count)]
