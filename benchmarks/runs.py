"""The runs: conversations in a closed loop, and injections beside them and alone."""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cpu import CpuMeter, Drift, Used
from benchmarks.surroundings import MODEL_S, Helper, Measured, Servers, measured

_RATE = 60.0
_WARM_UP_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """What the write path did; CPU in milliseconds a conversation."""

    at_once: int
    rate: float
    ratio: float
    p50: float
    p99: float
    cpu: Mapping[str, float]
    idle: float
    drift: float
    died: int
    users: Sequence[str]

    @property
    def product(self) -> float:
        """CPU of service, PostgreSQL and broker."""
        return sum(self.cpu.get(name, 0.0) for name in ("service", "PostgreSQL", "broker"))

    @property
    def measuring(self) -> float:
        """CPU of what stands around the product: it must stay small."""
        return sum(self.cpu.get(name, 0.0) for name in ("stand-in", "driver"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Round trips of injections over the broker, in milliseconds."""

    beside: str
    samples: int
    p50: float
    p95: float
    p99: float
    failed: int
    empty: int


async def write_run(on: Servers, *, at_once: int, seconds: float) -> Writes:
    """Measure the write path alone."""
    async with measured(on) as system:
        return await _writes(system, at_once=at_once, seconds=seconds)


async def read_runs(on: Servers, *, at_once: int, seconds: float) -> Sequence[Reads]:
    """Measure injections while conversations come in, and then without."""
    async with measured(on) as system:
        warm = await _writes(system, at_once=at_once, seconds=3.0)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(_writes(system, at_once=at_once, seconds=seconds + 2 * _WARM_UP_S))
            await asyncio.sleep(_WARM_UP_S)
            busy = await _reads(system, warm.users, seconds, beside=f"{at_once} conversations at once")
        beside = f"{busy.beside}, {writing.result().rate:.0f}/s"
        idle = await _reads(system, warm.users, seconds, beside="no conversation")
    return [_renamed(busy, beside), idle]


async def _writes(system: Measured, *, at_once: int, seconds: float) -> Writes:
    service = system.service
    order = {
        "kafka": service.kafka,
        "prefix": service.topics.prefix,
        "at_once": at_once,
        "seconds": seconds,
        "warm_up": _WARM_UP_S,
        "spread": MODEL_S,
    }
    driver = Helper("benchmarks.driver", order)
    await driver.start()
    try:
        while await driver.line() != "measuring":
            pass
        meter = CpuMeter({**system.pids, "driver": driver.pid})
        async with Drift() as drift:
            await asyncio.sleep(seconds)
        used = meter.read()
        driven = await driver.result()
    finally:
        await driver.stop()
    return _as_writes(driven, used, at_once=at_once, drift=drift.milliseconds)


def _as_writes(driven: Mapping[str, object], used: Used, *, at_once: int, drift: float) -> Writes:
    number, seconds = _number(driven["conversations"]), _number(driven["seconds"])
    latencies = driven["latencies"]
    assert isinstance(latencies, list)
    users = driven["users"]
    assert isinstance(users, list)
    rate = number / seconds
    return Writes(
        at_once=at_once,
        rate=rate,
        ratio=rate / (at_once / MODEL_S),
        p50=1_000 * percentile(latencies, 50),
        p99=1_000 * percentile(latencies, 99),
        cpu={name: 1_000 * spent / max(number, 1) for name, spent in used.by_part.items()},
        idle=used.idle,
        drift=drift,
        died=int(_number(driven["died"])),
        users=users,
    )


async def _reads(system: Measured, users: Sequence[str], seconds: float, *, beside: str) -> Reads:
    service = system.service
    order = {
        "kafka": service.kafka,
        "prefix": service.topics.prefix,
        "users": list(users),
        "rate": _RATE,
        "seconds": seconds,
    }
    asker = Helper("benchmarks.asker", order)
    await asker.start()
    try:
        asked = await asker.result()
    finally:
        await asker.stop()
    taken = [1_000 * one for one in asked["round_trips"]]
    return Reads(
        beside=beside,
        samples=len(taken),
        p50=percentile(taken, 50),
        p95=percentile(taken, 95),
        p99=percentile(taken, 99),
        failed=asked["failed"],
        empty=asked["empty"],
    )


def percentile(values: Sequence[float], share: int) -> float:
    """Return the value below which ``share`` percent of ``values`` lie; 0 without any."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def _renamed(reads: Reads, beside: str) -> Reads:
    return Reads(
        beside=beside,
        samples=reads.samples,
        p50=reads.p50,
        p95=reads.p95,
        p99=reads.p99,
        failed=reads.failed,
        empty=reads.empty,
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
