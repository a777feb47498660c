"""Measure this machine: ``python -m benchmarks [--at-once 32] [--seconds 10] [--only reads]``."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.runs import Reads, Writes, read_runs, write_run
from benchmarks.steady import Steady, steady_run
from benchmarks.surroundings import MODEL_S, Servers, servers

_MOST_SHARE: Final = 0.1
_FULL_SECONDS: Final = 17.0  # a thousand injections at 60/s


def main() -> int:
    """Measure and print; 1 when the figures are not worth much."""
    wanted = _arguments()
    with servers() as on:
        print(f"broker {on.kafka.kind}, database {on.postgres.kind}, model answers after {MODEL_S:.1f} s")
        return asyncio.run(_measure(on, wanted))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--at-once", type=int, nargs="+", default=[32], help="conversations of different users at once"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long a write run is measured")
    parser.add_argument(
        "--only",
        choices=["writes", "reads", "steady"],
        help="measure one of them; the steady load takes --seconds 300 and is run on demand alone",
    )
    parser.add_argument("--rate", type=float, default=20.0, help="conversations a second of the steady load")
    return parser.parse_args()


async def _measure(on: Servers, wanted: argparse.Namespace) -> int:
    if wanted.only == "steady":
        steady = await steady_run(on, rate=wanted.rate, seconds=wanted.seconds)
        _print_steady(steady, wanted.rate, wanted.seconds)
        return 0 if steady.is_sound else 1
    is_sound = True
    if wanted.only != "reads":
        writes = [await write_run(on, at_once=n, seconds=wanted.seconds) for n in wanted.at_once]
        _print_writes(writes)
        # Each of them has its say, also after one that is not sound.
        is_sound = not [one for one in writes if not _is_sound(one)]
    if wanted.only != "writes":
        seconds = max(wanted.seconds, _FULL_SECONDS)
        _print_reads(await read_runs(on, at_once=wanted.at_once[0], seconds=seconds))
    return 0 if is_sound else 1


def _is_sound(writes: Writes) -> bool:
    """Say whether the figures are the product's and not those of what measures it."""
    if writes.died:
        print(f"{writes.at_once} at once: {writes.died} conversations died", file=sys.stderr)
    if writes.measuring > _MOST_SHARE * writes.product:
        print(f"{writes.at_once} at once: driver and stand-in took over a tenth", file=sys.stderr)
    return not writes.died and writes.measuring <= _MOST_SHARE * writes.product


def _print_writes(writes: Sequence[Writes]) -> None:
    print("\nConversations, 8 messages in and 5 facts out; CPU in ms a conversation")
    parts = list(dict.fromkeys(name for one in writes for name in one.cpu))
    _print_table(
        ["at once", "conv/s", "ratio", "p50 ms", "p99 ms", *parts, "product", "idle", "drift ms"],
        [
            [
                str(one.at_once),
                f"{one.rate:.1f}",
                f"{one.ratio:.2f}",
                f"{one.p50:.0f}",
                f"{one.p99:.0f}",
                *(f"{one.cpu.get(name, 0.0):.2f}" for name in parts),
                f"{one.product:.1f}",
                f"{one.idle:.2f}",
                f"{one.drift:.1f}",
            ]
            for one in writes
        ],
    )


def _print_reads(reads: Sequence[Reads]) -> None:
    print("\nInjection over the broker, 60 requests/s")
    _print_table(
        ["beside", "samples", "p50 ms", "p95 ms", "p99 ms", "failed", "empty"],
        [
            [
                one.beside,
                str(one.samples),
                f"{one.p50:.1f}",
                f"{one.p95:.1f}",
                f"{one.p99:.1f}",
                str(one.failed),
                str(one.empty),
            ]
            for one in reads
        ],
    )


def _print_steady(steady: Steady, rate: float, seconds: float) -> None:
    print(
        f"\n{rate:.0f} conversations a second for {seconds:.0f} s; resident memory in MB, children included"
    )
    _print_table(
        ["role", "first minute", "middle", "last minute", "grown"],
        [
            [
                one.role,
                f"{one.first:.1f}",
                f"{one.middle:.1f}",
                f"{one.last:.1f}",
                f"{100 * (one.last / one.first - 1):+.1f} %",
            ]
            for one in steady.resident
        ],
    )
    print("\nLag at the end")
    _print_table(["group", "records"], [[group, str(lag)] for group, lag in sorted(steady.lag.items())])
    print(
        f"\nsent {steady.sent}, completed {steady.completed}, died {steady.died}; "
        f"p50 {steady.p50:.0f} ms, p99 {steady.p99:.0f} ms, "
        f"the last one {steady.drained_after:.1f} s after the end; injections {steady.asked}, "
        f"unanswered {steady.unanswered}"
    )


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
