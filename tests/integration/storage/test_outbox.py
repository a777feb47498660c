"""The outbox as the relay sees it."""

import asyncio
import time

import pytest

from domain.errors import StorageUnavailableError
from domain.outbox import OutboxRecord
from storage.outbox import PostgresOutbox
from storage.outbox_rows import record_row, write_records
from storage.pool import Database

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def write(database: Database, *values: bytes | None) -> None:
    records = [
        OutboxRecord(topic="t", key=b"k\xff", value=value, headers=(("h", b"\xff"), ("h", b"")))
        for value in values
    ]
    async with database.transaction() as conn:
        await write_records(conn, [record_row(one) for one in records])


async def test_records_come_in_order_byte_for_byte_and_go_when_they_are_done(
    database: Database, migrated_url: str
) -> None:
    source = PostgresOutbox(migrated_url)
    await write(database, b"1", None, b"\x00\xff")
    assert await source.lead()
    first = await source.turn([])
    second = await source.turn([one.id for one in first[:2]])
    third = await source.turn([one.id for one in second])
    await source.resign()

    assert [one.record.value for one in first] == [b"1", None, b"\x00\xff"]
    assert first[0].record.key == b"k\xff"
    assert first[0].record.headers == (("h", b"\xff"), ("h", b""))
    assert [one.record.value for one in second] == [b"\x00\xff"]
    assert third == []


async def test_what_is_not_due_waits(database: Database, migrated_url: str) -> None:
    source = PostgresOutbox(migrated_url)
    await write(database, b"1", b"2")
    async with database.connection() as conn:
        await conn.execute("UPDATE lis.outbox SET available_at = now() + interval '1 h' WHERE value = '1'")
    found = await source.turn([])
    await source.resign()

    assert [one.record.value for one in found] == [b"2"]


async def test_no_row_overtakes_one_of_a_lower_id(database: Database, migrated_url: str) -> None:
    source = PostgresOutbox(migrated_url)
    await write(database, b"1", b"2", b"3")
    async with database.connection() as conn:
        # The table has this row last from now on.
        await conn.execute("UPDATE lis.outbox SET topic = 'other' WHERE value = '1'")
    async with database.transaction() as holding:
        await holding.execute("SELECT 1 FROM lis.outbox WHERE value = '2' FOR UPDATE")
        async with asyncio.timeout(5):
            found = await source.turn([])
    await source.resign()

    assert [one.record.value for one in found] == [b"1", b"2", b"3"]


async def test_one_relay_leads_and_the_next_one_follows_it(database: Database, migrated_url: str) -> None:
    first, second = PostgresOutbox(migrated_url), PostgresOutbox(migrated_url)
    leads = [await first.lead(), await second.lead(), await first.lead()]
    async with database.connection() as conn:
        await conn.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l"
            " WHERE l.locktype = 'advisory' AND l.granted AND l.database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    with pytest.raises(StorageUnavailableError):
        await first.lead()
    leads += [await second.lead(), await first.lead()]
    await first.resign()
    await second.resign()

    assert leads == [True, False, True, True, False]


async def test_a_commit_wakes_the_relay(database: Database, migrated_url: str) -> None:
    source = PostgresOutbox(migrated_url)
    await source.lead()

    async def later() -> None:
        await asyncio.sleep(0.05)
        await write(database, b"1")

    started = time.monotonic()
    async with asyncio.TaskGroup() as group:
        group.create_task(later())
        await source.wait(5)
    by_database = time.monotonic() - started
    source.notify()
    await source.wait(5)
    took = time.monotonic() - started
    found = await source.turn([])
    await source.resign()

    assert by_database < 2
    assert took < 3
    assert len(found) == 1
