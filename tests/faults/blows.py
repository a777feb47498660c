"""What a round is hit with, chosen by its chance: kills, ends and freezes of roles, broker and database."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from service.embedded.errors import EmbeddedError
from tests.faults.scene import Scene
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer

Signal = Literal["SIGKILL", "SIGTERM", "SIGSTOP"]

BROKER: Final = "broker"
DATABASE: Final = "database"

_FOR_ROLES: Final[Mapping[Signal, float]] = {"SIGKILL": 0.45, "SIGTERM": 0.25, "SIGSTOP": 0.3}
_FOR_SERVERS: Final[Mapping[Signal, float]] = {"SIGKILL": 0.7, "SIGTERM": 0.15, "SIGSTOP": 0.15}
# Longer than the session time-out, so that the group has given the partitions to somebody else by then.
_FROZEN_S: Final = (3.5, 5.5)
_SERVER_FROZEN_S: Final = (1.5, 4.0)
_SERVER_GONE_S: Final = (0.0, 2.0)
_GAP_S: Final = (0.2, 2.0)
_JOINING_GAP_S: Final = (0.2, 0.5)
_SHARE_OF_OVERLAPS: Final = 0.4
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """A signal to one process, or to a server; ``joins``: it comes while the one before it lasts."""

    target: str
    signal: Signal
    joins: bool = False

    def __str__(self) -> str:
        return f"{self.signal} {self.target}"

    @property
    def kind(self) -> str:
        """What is hit, without the number of the replica."""
        return self.target.partition("-")[0]


def blows_of(
    chance: random.Random, roles_of: Mapping[str, str], *, roles: int, brokers: int, databases: int
) -> list[Blow]:
    """Choose so many blows to the processes of ``roles_of`` and to the servers, in any order.

    One is always a freeze of a worker: only what comes back to jobs that others have done meanwhile shows
    whether it can still write. And the relays are killed while the broker is frozen: only what was sent
    and is not acknowledged shows whether it is sent again.
    """
    processes = sorted(roles_of)
    weights = [1 if roles_of[name] == "responder" else 4 for name in processes]
    servers = [BROKER] * (brokers - 1) + [DATABASE] * databases
    blows = [Blow(target=target, signal=_chosen(chance, _FOR_SERVERS)) for target in servers]
    relays = [name for name in processes if "relay" in roles_of[name]][: roles - 1]
    workers = [name for name in processes if "extraction" in roles_of[name]]
    blows.append(Blow(target=chance.choice(workers), signal="SIGSTOP"))
    blows += [
        Blow(target=target, signal=_chosen(chance, _FOR_ROLES))
        for target in chance.choices(processes, weights=weights, k=roles - 1 - len(relays))
    ]
    chance.shuffle(blows)
    place = chance.randint(0, len(blows))
    blows[place:place] = [
        Blow(target=BROKER, signal="SIGSTOP"),
        *(Blow(target=target, signal="SIGKILL", joins=True) for target in relays),
    ]
    return blows


def counted(blows: Iterable[Blow]) -> str:
    """Say how many there are of each kind."""
    found = Counter(f"{blow.signal} {blow.kind}" for blow in blows)
    return ", ".join(f"{count} {name}" for name, count in sorted(found.items()))


def _chosen(chance: random.Random, shares: Mapping[Signal, float]) -> Signal:
    return chance.choices(list(shares), weights=list(shares.values()))[0]


async def strike(
    scene: Scene, blows: Sequence[Blow], chance: random.Random, sent: Sequence[asyncio.Event]
) -> None:
    """Hit with each of ``blows`` in turn; set one of ``sent`` before each, so that there is work to hit.

    Some blows begin while the one before still lasts. It returns when all are over and everything runs.
    """
    locks = {BROKER: asyncio.Lock(), DATABASE: asyncio.Lock()}
    async with asyncio.TaskGroup() as group:
        for blow, due in zip(blows, sent, strict=True):
            due.set()
            await asyncio.sleep(chance.uniform(*(_JOINING_GAP_S if blow.joins else _GAP_S)))
            # Chosen here, where no choice waits for how long another blow takes.
            own = random.Random(chance.getrandbits(64))  # noqa: S311 - a round is to be repeatable
            is_alone = chance.random() >= _SHARE_OF_OVERLAPS and not _joined(blows, blow)
            lasting = group.create_task(_hit(scene, blow, own, locks))
            if is_alone:
                await asyncio.wait((lasting,))


def _joined(blows: Sequence[Blow], blow: Blow) -> bool:
    """Say whether the blow after ``blow`` is to meet it."""
    after = next((place for place, one in enumerate(blows, start=1) if one is blow), len(blows))
    return after < len(blows) and blows[after].joins


async def _hit(scene: Scene, blow: Blow, chance: random.Random, locks: Mapping[str, asyncio.Lock]) -> None:
    if blow.target in locks:
        server = scene.ground.kafka if blow.target == BROKER else scene.ground.postgres
        async with locks[blow.target]:
            await _hit_server(server, blow.signal, chance)
        return
    replica = scene.replicas[blow.target]
    match blow.signal:
        case "SIGKILL":
            await replica.kill(chance)
        case "SIGTERM":
            await replica.terminate(chance)
        case "SIGSTOP":
            await replica.freeze(chance.uniform(*_FROZEN_S))


async def _hit_server(server: KafkaServer | PostgresServer, signal: Signal, chance: random.Random) -> None:
    match signal:
        case "SIGKILL":
            server.kill()
        case "SIGTERM":
            await server.end()
        case "SIGSTOP":
            server.freeze()
            try:
                await asyncio.sleep(chance.uniform(*_SERVER_FROZEN_S))
            finally:
                server.thaw()
            return
    await asyncio.sleep(chance.uniform(*_SERVER_GONE_S))
    await _up_again(server)


async def _up_again(server: KafkaServer | PostgresServer) -> None:
    """Start ``server`` again; on a busy machine it may take more than one try."""
    for _ in range(_TRIES):
        try:
            await server.restart()
        except (EmbeddedError, RuntimeError):
            server.kill()
        else:
            return
    raise OSError("a server did not start again")
