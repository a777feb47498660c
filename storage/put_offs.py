"""Jobs that found no slot: ordered again for later, many at once (docs/architecture/fairness.md)."""

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.jobs import JobOrder
from domain.slots import SHORTEST_WAIT_S, Queue
from storage.job_rows import ordered
from storage.job_sql import COUNT_WAITING, PUT_OFF
from storage.json_text import Row, rows_text
from storage.natural_batch import NaturalBatch
from storage.outbox_rows import outbox_rows, write_records
from storage.outgoing import Encode
from storage.pool import Database

# A backlog is put back at this many a transaction: it stands between a lane and other tenants.
_CAP: Final = 256
_COUNTED_FOR_S: Final = 1.0
_MOST_TENANTS: Final = 1_000

_Wanted = tuple[JobOrder, float]


class PutOffs:
    """Puts jobs back in natural batches; the length of a tenant's queue is counted once a second at most."""

    def __init__(
        self,
        database: Database,
        *,
        encode: Encode,
        slots: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._encode = encode
        self._slots = slots
        self._clock = clock
        self._queues: dict[str, tuple[float, dict[bool, Queue]]] = {}
        self._batch = NaturalBatch[_Wanted, None](self._flush, cap=_CAP)

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order the job of ``order`` again for later; one that has ended, or is not due, is left alone."""
        await self._batch.submit((order, job_seconds))

    async def _flush(self, wanted: Sequence[_Wanted]) -> Sequence[Exception | None]:
        orders = {(order.tenant_id, order.job_id): order for order, _ in wanted}
        tenants = sorted({tenant_id for tenant_id, _ in orders})
        given = [
            {"tenant_id": one.tenant_id, "user_id": one.user_id, "job_id": one.job_id}
            for one in orders.values()
        ]
        async with self._database.pipeline() as conn:
            await self._count(conn, tenants)
            queues = self._waits(tenants, job_seconds=wanted[-1][1])
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(PUT_OFF, {"orders": rows_text(given), "queues": rows_text(queues)})
                jobs = await cursor.fetchall()
            rows = [
                row
                for job in jobs
                for row in outbox_rows(
                    [ordered(job, at=job["due_at"])],
                    self._encode,
                    tenant_id=job["tenant_id"],
                    user_id=job["user_id"],
                )
            ]
            await write_records(conn, rows)
        return [None] * len(wanted)

    async def _count(self, conn: AsyncConnection, tenants: Sequence[str]) -> None:
        now = self._clock()
        if len(self._queues) > _MOST_TENANTS:
            self._queues = {
                tenant_id: counted
                for tenant_id, counted in self._queues.items()
                if now - counted[0] < _COUNTED_FOR_S
            }
        stale = [
            one for one in tenants if one not in self._queues or now - self._queues[one][0] > _COUNTED_FOR_S
        ]
        if not stale:
            return
        counted: dict[str, dict[bool, Queue]] = {tenant_id: {} for tenant_id in stale}
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(COUNT_WAITING, {"tenants": stale, "slots": self._slots})
            for row in await cursor.fetchall():
                queue = Queue(waiting=row["waiting"], slots=row["slots"])
                counted[row["tenant_id"]][row["is_replay"]] = queue
        self._queues.update({tenant_id: (now, queues) for tenant_id, queues in counted.items()})

    def _waits(self, tenants: Sequence[str], *, job_seconds: float) -> list[Row]:
        return [
            {
                "tenant_id": tenant_id,
                "is_replay": is_replay,
                "seconds": queue.seconds(job_seconds=job_seconds),
                "shortest": SHORTEST_WAIT_S,
            }
            for tenant_id in tenants
            for is_replay, queue in self._queues[tenant_id][1].items()
        ]


def tenant_key(tenant_id: str) -> int:
    """Number the lock under which the running jobs of a tenant are counted."""
    digest = blake2b(f"slots\x1f{tenant_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
