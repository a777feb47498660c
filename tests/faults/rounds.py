"""One round: play the corpus of a seed under its blows, drain, look, and say what was broken."""

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
from aiokafka.errors import KafkaError

from tests.faults.blows import Blow, blows_of, counted, strike
from tests.faults.corpus import Corpus, corpus_of
from tests.faults.model import model
from tests.faults.order import second_sendings
from tests.faults.promises import broken_promises
from tests.faults.sabotaged import launcher
from tests.faults.scene import ALONE, PAIRS, Cast, Ground, Scene, scene
from tests.faults.snapshot import drained, left_behind, remembered, snapshot
from tests.support.publishing import Outgoing, Publisher, publishing
from tests.support.tables import Row, Tables, looking

_REQUEST_MS: Final = 60_000
_AGAIN_S: Final = 0.5

Memory = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How big rounds are. Rounds whose seeds differ by a multiple of ``corpora`` play the same corpus."""

    sessions: int = 300
    roles: int = 6
    brokers: int = 2
    databases: int = 2
    corpora: int = 5
    drain_s: float = 120.0
    sabotage: str | None = None
    roles_of: Mapping[str, str] = field(default_factory=lambda: PAIRS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a round; ``kept`` is where everything about a broken one is."""

    seed: int
    blows: tuple[Blow, ...]
    sessions: int
    letters: int
    repeats: int
    broken: tuple[str, ...]
    seconds: float
    kept: Path | None

    def line(self) -> str:
        """Return the round as one line."""
        how = f"BROKEN, see {self.kept}" if self.broken else "held"
        return (
            f"seed {self.seed}: {len(self.blows)} kills ({counted(self.blows)}), {self.sessions} sessions, "
            f"{self.letters} dead letters, {self.repeats} events sent again, {how}, {self.seconds:.0f} s"
        )

    def hits(self, target: str) -> int:
        """Count the blows to ``target``."""
        return sum(blow.target == target for blow in self.blows)


class Rounds:
    """Plays rounds on one ground; what an undisturbed run remembers is found out once a corpus."""

    def __init__(self, ground: Ground, plan: Plan) -> None:
        self._ground = ground
        self._plan = plan
        self._memories: dict[int, Memory] = {}

    async def play(self, seed: int) -> Result:
        """Play the round of ``seed``."""
        start = time.monotonic()
        number = seed % self._plan.corpora
        corpus = corpus_of(number, sessions=self._plan.sessions)
        if number not in self._memories:
            self._memories[number] = await self._undisturbed(corpus)
        round_ = _Round(self._ground, self._plan, seed, corpus)
        try:
            await round_.play(self._memories[number])
        except* (AssertionError, OSError, KafkaError, psycopg.Error) as errors:
            # A process that does not start, or a server that does not come back, ends its own round alone.
            round_.broken.append(f"the round came to no end: {_first(errors)[:300]}")
        if not round_.broken:
            shutil.rmtree(round_.folder)
        return Result(
            seed=seed,
            blows=tuple(round_.blows),
            sessions=len(corpus.sessions),
            letters=round_.letters,
            repeats=round_.repeats,
            broken=tuple(round_.broken),
            seconds=time.monotonic() - start,
            kept=round_.folder if round_.broken else None,
        )

    async def _undisturbed(self, corpus: Corpus) -> Memory:
        """Return what is remembered of the sessions of ``corpus`` when each comes once and nothing fails."""
        with tempfile.TemporaryDirectory(prefix="afterword-faults-") as folder:
            async with (
                model() as quick,
                scene(self._ground, quick, ALONE, folder=Path(folder)) as on,
                looking(on.database_url) as tables,
            ):
                async with publishing(on.kafka) as publisher:
                    await publisher.send(*corpus.undisturbed(on.topics))
                await tables.settled(len(corpus.good), within=self._plan.drain_s)
                return await remembered(tables, corpus.good)


class _Round:
    """The round of one seed and what was found in it."""

    def __init__(self, ground: Ground, plan: Plan, seed: int, corpus: Corpus) -> None:
        self._ground = ground
        self._plan = plan
        self._corpus = corpus
        self._chance = random.Random(seed)  # noqa: S311 - a round is to be repeatable
        self.blows = blows_of(
            self._chance,
            plan.roles_of,
            roles=plan.roles,
            brokers=plan.brokers,
            databases=plan.databases,
        )
        self._cast = Cast(
            roles=plan.roles_of,
            # Static members go on at once after a start, dynamic ones leave their work to others first.
            is_static=seed % 2 == 0,
            launcher=launcher(plan.sabotage),
        )
        self.folder = Path(tempfile.mkdtemp(prefix=f"afterword-faults-{seed}-"))
        self.broken: list[str] = []
        self.letters = 0
        self.repeats = 0

    async def play(self, undisturbed: Memory) -> None:
        """Play it; ``broken`` says afterwards what was wrong."""
        async with (
            model(self._corpus) as slow,
            scene(self._ground, slow, self._cast, folder=self.folder) as on,
        ):
            await self._disturb(on)
            async with looking(on.database_url) as tables:
                await self._look(on, tables, undisturbed)
                self.broken += await on.end()
                self.broken += [] if self.broken else await left_behind(tables)
            self.broken += on.broken

    async def _disturb(self, on: Scene) -> None:
        """Send everything, a part before each blow and the last one after all of them."""
        parts = _parts(self._corpus.records(on.topics), len(self.blows) + 1)
        due = [asyncio.Event() for _ in parts]
        async with (
            publishing(on.kafka, request_timeout_ms=_REQUEST_MS) as publisher,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(_sent(publisher, parts, due))
            await strike(on, self.blows, self._chance, due[:-1])
            due[-1].set()

    async def _look(self, on: Scene, tables: Tables, undisturbed: Memory) -> None:
        self.broken += await drained(on, tables, len(self._corpus.sessions), within=self._plan.drain_s)
        seen = await snapshot(on, tables, self._corpus.good)
        self.letters, self.repeats = len(seen.rows["letters"]), second_sendings(seen)
        self.broken += broken_promises(seen, self._corpus, undisturbed)
        if self.broken:
            seen.save(self.folder / "seen")


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


def _first(errors: BaseExceptionGroup[BaseException]) -> str:
    """Say what the innermost of ``errors`` says that comes first."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)


def _parts(records: Sequence[Outgoing], count: int) -> list[Sequence[Outgoing]]:
    size = -(-len(records) // count)
    return [records[start * size : (start + 1) * size] for start in range(count)]
