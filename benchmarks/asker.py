"""Asks for injections at a steady rate, in a process of its own.

Reads its order as JSON from standard input; prints its result as JSON.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from itertools import cycle
from uuid import UUID

from producers.client import MemoryClient
from producers.client_errors import MemoryClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to ask and how often."""

    kafka: str
    prefix: str
    users: tuple[str, ...]
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Round trips in seconds, in order of size; ``empty`` replies had no fact in them."""

    round_trips: tuple[float, ...]
    failed: int
    empty: int


class Asker:
    """An open loop: a slow reply does not make the next request wait."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._round_trips: list[float] = []
        self._failed = 0
        self._empty = 0

    async def run(self) -> Asked:
        """Ask for the time that was ordered."""
        order = self._order
        client = MemoryClient(
            order.kafka, topic_prefix=order.prefix, reply_topic=f"{order.prefix}benchmark.replies"
        )
        users = cycle([UUID(user) for user in order.users])
        async with client, asyncio.TaskGroup() as group:
            # The first one opens connections.
            await self._ask(client, next(users), is_counted=False)
            start = time.perf_counter()
            for number in range(int(order.rate * order.seconds)):
                await asyncio.sleep(start + number / order.rate - time.perf_counter())
                group.create_task(self._ask(client, next(users)))
        return Asked(round_trips=tuple(sorted(self._round_trips)), failed=self._failed, empty=self._empty)

    async def _ask(self, client: MemoryClient, user: UUID, *, is_counted: bool = True) -> None:
        start = time.perf_counter()
        try:
            reply = await client.inject(user=user, timeout=5.0)
        except MemoryClientError:
            self._failed += 1
            return
        if is_counted:
            self._round_trips.append(time.perf_counter() - start)
            self._empty += not reply.applied


def main() -> None:
    """Read the order, ask, print the result."""
    order = Order(**json.loads(sys.stdin.readline()))
    sys.stdout.write(json.dumps(asdict(asyncio.run(Asker(order).run()))) + "\n")


if __name__ == "__main__":
    main()
