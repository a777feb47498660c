"""Kill the parts of the service at random and check from tables and topics alone that every promise holds.

``python -m tests.faults --seeds 25`` prints a line a seed and a sum; ``--seed N`` plays one again, and
``--sabotage NAME`` breaks a promise on purpose, which has to be noticed.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.faults.blows import BROKER, DATABASE, counted
from tests.faults.rounds import Plan, Result, Rounds
from tests.faults.sabotaged import SABOTAGES
from tests.faults.scene import Ground
from tests.support.kafka import running_kafka
from tests.support.postgres import running_postgres
from tests.support.surroundings import read_surroundings

_SABOTAGED_DRAIN_S: Final = 40.0


def main() -> int:
    """Play the rounds; 1 when a promise was broken in one."""
    wanted = _arguments()
    # What we do to the broker is no news.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)
    seeds = (
        [wanted.seed] if wanted.seed is not None else range(wanted.from_seed, wanted.from_seed + wanted.seeds)
    )
    found = read_surroundings()
    with running_kafka(found) as kafka, running_postgres(found) as postgres:
        if kafka.kind != "apache" or postgres.kind != "wheel":
            write(
                "needs an Apache Kafka and a PostgreSQL of its own to kill, "
                f"and has {kafka.kind} and {postgres.kind}"
            )
            return 2
        ground = asyncio.run(Ground.of(kafka, postgres))
        return asyncio.run(_play(Rounds(ground, _plan(wanted)), seeds))


def write(line: str) -> None:
    """Tell the person who waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many rounds")
    parser.add_argument("--from-seed", type=int, default=1, help="the seed of the first round")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--sessions", type=int, default=Plan().sessions, help="sessions a round")
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES), help="break this on purpose")
    return parser.parse_args()


def _plan(wanted: argparse.Namespace) -> Plan:
    if wanted.sabotage is None:
        return Plan(sessions=wanted.sessions)
    # What a sabotaged service has lost does not come, however long it is waited for.
    return Plan(sessions=wanted.sessions, sabotage=wanted.sabotage, drain_s=_SABOTAGED_DRAIN_S)


async def _play(rounds: Rounds, seeds: Sequence[int]) -> int:
    start = time.monotonic()
    results: list[Result] = []
    for seed in seeds:
        result = await rounds.play(seed)
        results.append(result)
        write(result.line())
        for promise in result.broken:
            write(f"  broken: {promise}")
    write(_sum(results, time.monotonic() - start))
    return 1 if any(result.broken for result in results) else 0


def _sum(results: Sequence[Result], seconds: float) -> str:
    blows = [blow for result in results for blow in result.blows]
    broken = [result.seed for result in results if result.broken]
    return (
        f"{len(results)} seeds, {len(blows)} kills, "
        f"{sum(one.hits(BROKER) for one in results)} of the broker, "
        f"{sum(one.hits(DATABASE) for one in results)} of the database ({counted(blows)}), "
        f"{sum(one.sessions for one in results)} sessions, "
        f"{sum(one.letters for one in results)} dead letters, "
        f"{sum(one.repeats for one in results)} events sent again, {len(broken)} seeds broke a promise"
        f"{f' ({broken})' if broken else ''}, {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
