"""Kill the parts of the service at random and check from tables and topics that every promise holds.

``python -m tests.faults --seeds 20`` prints each seed before its round; ``--seed N`` plays one again.
"""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.faults.corpus import Corpus, corpus_of
from tests.faults.promises import broken_promises
from tests.support.disturbances import Blow, play, stage
from tests.support.kafka import KafkaServer, running_kafka
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.surroundings import read_surroundings

_DRAIN_S: Final = 120.0
_BLOWS: Final[Mapping[Blow, int]] = {"kill": 6, "terminate": 2, "kill broker": 1, "kill database": 1}


def main() -> int:
    """Play the rounds; 1 when a promise was broken in one."""
    wanted = _arguments()
    # What we do to the broker is no news.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    seeds = [wanted.seed] if wanted.seed is not None else range(1, wanted.seeds + 1)
    found = read_surroundings()
    with running_kafka(found) as kafka, running_postgres(found) as postgres:
        write(f"broker {kafka.kind}, database {postgres.kind}")
        failed = [seed for seed in seeds if asyncio.run(_round(kafka, postgres, seed, wanted.blows))]
    write(f"{len(failed)} of {len(seeds)} rounds broke a promise" + (f": {failed}" if failed else ""))
    return 1 if failed else 0


def write(line: str) -> None:
    """Tell the person who waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many rounds, from seed 1 on")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--blows", type=int, default=5, help="kills a round")
    return parser.parse_args()


async def _round(kafka: KafkaServer, postgres: PostgresServer, seed: int, count: int) -> bool:
    """Play the corpus of ``seed`` undisturbed and disturbed; say whether a promise was broken."""
    start = time.monotonic()
    chance = random.Random(seed)  # noqa: S311 - a round is to be repeatable
    corpus = corpus_of(chance)
    blows = _blows(kafka, postgres, chance, count)
    write(f"seed {seed}: {len(corpus.records)} records, {', '.join(blows)}")
    expected, _ = await _played(kafka, postgres, corpus, [], chance)
    found, broken = await _played(kafka, postgres, corpus, blows, chance)
    if found != expected:
        broken = [*broken, "the memory is another than undisturbed"]
    for promise in broken:
        write(f"  broken: {promise}")
    write(f"  {'broken' if broken else 'held'} in {time.monotonic() - start:.0f} s")
    return bool(broken)


def _blows(kafka: KafkaServer, postgres: PostgresServer, chance: random.Random, count: int) -> Sequence[Blow]:
    # Tansu keeps nothing over a kill, and a server that somebody gave us is not ours to kill.
    possible = dict(_BLOWS)
    if not kafka.can_restart or kafka.kind == "tansu":
        del possible["kill broker"]
    if not postgres.can_restart:
        del possible["kill database"]
    return chance.choices(list(possible), weights=list(possible.values()), k=count)


async def _played(
    kafka: KafkaServer,
    postgres: PostgresServer,
    corpus: Corpus,
    blows: Sequence[Blow],
    chance: random.Random,
) -> tuple[Mapping[str, Sequence[Mapping[str, Any]]], Sequence[str]]:
    """Play ``corpus`` under ``blows``; return what is remembered and which promises were broken."""
    prefix = f"faults-{chance.getrandbits(32):08x}-{time.time_ns():x}."
    with tempfile.TemporaryDirectory(prefix="afterword-faults-") as folder:
        async with stage(kafka, postgres, prefix=prefix, folder=Path(folder)) as on:
            await play(corpus.on(on.service.topics.ended), on, blows, chance)
            try:
                await on.tables.settled(len(corpus.sessions), within=_DRAIN_S)
            except AssertionError as error:
                return {}, [str(error)]
            return await on.tables.memory(), await broken_promises(on, corpus)


if __name__ == "__main__":
    sys.exit(main())
