"""One round: play the corpus of a seed under its blows, drain, look, and say what was broken."""

import random
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from aiokafka.errors import KafkaError

from tests.faults.blows import Blow, blows_of, counted, strike
from tests.faults.corpus import Corpus, corpus_of
from tests.faults.playing import Memory, Playing, undisturbed
from tests.faults.sabotaged import launcher
from tests.faults.scene import PAIRS, Cast, Ground


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
            self._memories[number] = await undisturbed(self._ground, corpus)
        chance = random.Random(seed)  # noqa: S311 - a round is to be repeatable
        blows = self._blows(chance)
        round_ = self._playing(seed, corpus, parts=len(blows))
        try:
            await round_.play(self._memories[number], lambda on, due: strike(on, blows, chance, due))
        except* (AssertionError, OSError, KafkaError, psycopg.Error) as errors:
            # A process that does not start, or a server that does not come back, ends its own round alone.
            round_.broken.append(f"the round came to no end: {_first(errors)[:300]}")
        if not round_.broken:
            shutil.rmtree(round_.folder)
        return Result(
            seed=seed,
            blows=tuple(blows),
            sessions=len(corpus.sessions),
            letters=round_.letters,
            repeats=round_.repeats,
            broken=tuple(round_.broken),
            seconds=time.monotonic() - start,
            kept=round_.folder if round_.broken else None,
        )

    def _blows(self, chance: random.Random) -> list[Blow]:
        plan = self._plan
        return blows_of(
            chance, plan.roles_of, roles=plan.roles, brokers=plan.brokers, databases=plan.databases
        )

    def _playing(self, seed: int, corpus: Corpus, *, parts: int) -> Playing:
        cast = Cast(
            roles=self._plan.roles_of,
            # Static members go on at once after a start, dynamic ones leave their work to others first.
            is_static=seed % 2 == 0,
            launcher=launcher(self._plan.sabotage),
        )
        folder = Path(tempfile.mkdtemp(prefix=f"afterword-faults-{seed}-"))
        return Playing(self._ground, corpus, cast, folder=folder, parts=parts, drain_s=self._plan.drain_s)


def _first(errors: BaseExceptionGroup[BaseException]) -> str:
    """Say what the innermost of ``errors`` says that comes first."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)
