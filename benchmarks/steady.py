"""A steady load for minutes, each role in a process of its own: does memory stay, is nothing left behind?"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid4, uuid5

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.memory import MemoryMeter
from benchmarks.runs import percentile
from benchmarks.surroundings import MODEL_S, Helper, Servers
from tests.support.scripted_model import ScriptedModel
from tests.support.service import RunningService

ROLES: Final = ("intake", "extraction", "relay", "upkeep", "responder", "http")
_USERS: Final = 2_000
_ASKED_A_SECOND: Final = 5.0
_MINUTE_S: Final = 60.0
# Of a short run the first and the last quarter stand for minutes.
_MOST_SHARE: Final = 0.25
_SETTLING_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Megabytes of a role in the first minute, the one in the middle, and the last one."""

    role: str
    first: float
    middle: float
    last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """What a steady load left; latencies in milliseconds, ``lag`` by group."""

    resident: Sequence[Resident]
    lag: Mapping[str, int]
    sent: int
    completed: int
    died: int
    p50: float
    p99: float
    drained_after: float
    asked: int
    unanswered: int

    @property
    def is_sound(self) -> bool:
        """Whether all that was sent has ended well, with nothing left to read."""
        return self.completed == self.sent and not self.died and not sum(self.lag.values())


async def steady_run(on: Servers, *, rate: float, seconds: float) -> Steady:
    """Feed ``rate`` conversations a second and ask for injections beside them."""
    async with _roles(on) as roles:
        some = next(iter(roles.values()))
        where = {"kafka": some.kafka, "prefix": some.topics.prefix}
        users = [str(uuid5(NAMESPACE_URL, f"steady {number}")) for number in range(_USERS)]
        feeder = Helper("benchmarks.feeder", {**where, "users": users, "rate": rate, "seconds": seconds})
        asker = Helper(
            "benchmarks.asker", {**where, "users": users, "rate": _ASKED_A_SECOND, "seconds": seconds}
        )
        try:
            await feeder.start()
            while await feeder.line() != "feeding":
                pass
            await asker.start()
            async with MemoryMeter({name: role.pid for name, role in roles.items()}) as memory:
                while await feeder.line() != "fed":
                    pass
            fed, asked = await feeder.result(), await asker.result()
        finally:
            await feeder.stop()
            await asker.stop()
        lag = await _settled(some.kafka, some.topics.prefix)
    share = min(_MINUTE_S / seconds, _MOST_SHARE)
    return Steady(
        resident=[_resident(memory, name, share) for name in roles],
        lag=lag,
        sent=fed["sent"],
        completed=fed["completed"],
        died=fed["died"],
        p50=1_000 * percentile(fed["latencies"], 50),
        p99=1_000 * percentile(fed["latencies"], 99),
        drained_after=fed["drained_after"],
        asked=len(asked["round_trips"]),
        unanswered=asked["failed"],
    )


def _resident(memory: MemoryMeter, role: str, share: float) -> Resident:
    return Resident(
        role=role,
        first=memory.mean(role, 0.0, share),
        middle=memory.mean(role, 0.5 - share / 2, 0.5 + share / 2),
        last=memory.mean(role, 1.0 - share, 1.0),
    )


@asynccontextmanager
async def _roles(on: Servers) -> AsyncGenerator[Mapping[str, RunningService]]:
    """Give each role in a process of its own, with topics and a database of this run."""
    url, prefix = on.postgres.create_database(), f"steady-{uuid4().hex[:8]}."
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afterword-steady-")))
            model = await stack.enter_async_context(ScriptedModel(latency=MODEL_S))
            roles = {
                role: RunningService(
                    folder / role,
                    kafka=on.kafka,
                    database_url=url,
                    topic_prefix=prefix,
                    settings={
                        "LLM_PROVIDER_ORDER": "openai",
                        "OPENAI_BASE_URL": f"{model.url}/v1",
                        "OPENAI_MODEL": "scripted",
                        "LOG_LEVEL": "WARNING",
                    },
                    arguments=("--roles", role),
                )
                for role in ROLES
            }
            await asyncio.gather(*(stack.enter_async_context(role) for role in roles.values()))
            yield roles
    finally:
        on.postgres.drop_database(url)


async def _settled(bootstrap: str, prefix: str) -> Mapping[str, int]:
    """Return the lag by group once it is 0, or as it is after a while."""
    end = time.monotonic() + _SETTLING_S
    while sum((lag := await lag_of_groups(bootstrap, prefix)).values()) and time.monotonic() < end:
        await asyncio.sleep(1.0)
    return lag


async def lag_of_groups(bootstrap: str, prefix: str) -> dict[str, int]:
    """Return how many records of topics with ``prefix`` each group has still to commit."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    await admin.start()
    await consumer.start()
    try:
        lag: dict[str, int] = {}
        for group, _ in await admin.list_consumer_groups():
            offsets = await admin.list_consumer_group_offsets(group)
            topics = {place.topic for place in offsets if place.topic.startswith(prefix)}
            places = [place for topic in sorted(topics) for place in await _places(admin, topic)]
            ends: dict[TopicPartition, int] = await consumer.end_offsets(places) if places else {}
            if ends:
                done = {place: max(found.offset, 0) for place, found in offsets.items()}
                lag[group] = sum(end - done.get(place, 0) for place, end in ends.items())
        return lag
    finally:
        await consumer.stop()
        await admin.close()


async def _places(admin: AIOKafkaAdminClient, topic: str) -> list[TopicPartition]:
    described = await admin.describe_topics([topic])
    return [TopicPartition(topic, one["partition"]) for one in described[0]["partitions"]]
