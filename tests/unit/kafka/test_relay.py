"""The relay: what happens to the order and the rows when the broker fails in the middle."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import BrokerUnavailableError, StorageUnavailableError
from domain.outbox import Headers, OutboxRecord, WaitingRecord
from producers.outbox_relay import OutboxRelay


class Rows:
    """An outbox in memory."""

    def __init__(self, rows: Sequence[WaitingRecord], *, leads: bool = True) -> None:
        self.rows = {row.id: row for row in rows}
        self.leads = leads
        self.away = 0
        self.resigned = False

    async def lead(self) -> bool:
        return self.leads

    async def turn(self, done: Sequence[int]) -> Sequence[WaitingRecord]:
        if self.away:
            self.away -= 1
            raise StorageUnavailableError("away")
        for row in done:
            self.rows.pop(row, None)
        return [self.rows[row] for row in sorted(self.rows)][:500]

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def resign(self) -> None:
        self.resigned = True


class Broker:
    """Takes records; fails those that the plan says."""

    def __init__(self, refused: Sequence[int] = (), *, unacknowledged: Sequence[int] = ()) -> None:
        self._refused = set(refused)
        self._unacknowledged = set(unacknowledged)
        self._calls = 0
        self.log: list[tuple[bytes | None, bytes | None]] = []

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Awaitable[Any]:
        self._calls += 1
        if self._calls in self._refused:
            raise BrokerUnavailableError("refused")
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        is_safe = self._calls not in self._unacknowledged
        if is_safe:
            self.log.append((key, value))
        done.set_result(is_safe)
        return done

    async def settle(self, sent: Sequence[Awaitable[Any]]) -> list[bool]:
        return [await one for one in sent]


def row(number: int, key: str) -> WaitingRecord:
    record = OutboxRecord(topic="t", key=key.encode(), value=str(number).encode())
    return WaitingRecord(id=number, record=record)


async def relay_until_empty(rows: Rows, broker: Broker) -> OutboxRelay:
    relay = OutboxRelay(rows, broker)
    running = asyncio.ensure_future(relay.run())
    async with asyncio.timeout(10):
        while rows.rows:
            await asyncio.sleep(0.001)
    relay.stop()
    await running
    return relay


@pytest.mark.anyio
async def test_rows_go_out_in_order_and_are_deleted() -> None:
    rows, broker = Rows([row(number, "k") for number in range(5)]), Broker()

    await relay_until_empty(rows, broker)

    assert [value for _, value in broker.log] == [b"0", b"1", b"2", b"3", b"4"]
    assert rows.resigned


@pytest.mark.anyio
async def test_a_relay_that_does_not_lead_sends_nothing() -> None:
    rows, broker = Rows([row(1, "k")], leads=False), Broker()
    relay = OutboxRelay(rows, broker)
    running = asyncio.ensure_future(relay.run())

    await asyncio.sleep(0.05)
    healthy = relay.healthy()
    relay.stop()
    await running

    assert broker.log == []
    assert healthy
    assert list(rows.rows) == [1]


@pytest.mark.anyio
async def test_a_row_is_kept_until_its_deletion_is_stored() -> None:
    rows, broker = Rows([row(1, "k")]), Broker()
    rows.away = 1

    relay = await relay_until_empty(rows, broker)

    assert relay.failures == 1
    assert [value for _, value in broker.log] == [b"1"]


@settings(max_examples=25, deadline=None)
@given(
    keys=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    refused=st.sets(st.integers(1, 8), max_size=2),
    unacknowledged=st.sets(st.integers(1, 8), max_size=2),
)
def test_whatever_fails_every_row_goes_out_and_the_last_of_a_key_is_its_newest(
    keys: list[str], refused: set[int], unacknowledged: set[int]
) -> None:
    rows = Rows([row(number, key) for number, key in enumerate(keys)])
    broker = Broker(sorted(refused), unacknowledged=sorted(unacknowledged))

    asyncio.run(_quickly(rows, broker))

    for key in set(keys):
        wanted = [number for number, own in enumerate(keys) if own == key]
        got = [int(value or b"") for own, value in broker.log if own == key.encode()]
        assert set(got) == set(wanted)
        assert got[-1] == wanted[-1]


async def _quickly(rows: Rows, broker: Broker) -> None:
    await relay_until_empty(rows, broker)
