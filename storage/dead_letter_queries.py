"""Dead letters for an operator: listed, shown, redriven and purged."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, Protocol

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.dead_letters import (
    DeadLetter,
    LetterFilter,
    LetterGroup,
    LetterStatus,
    LetterSummary,
    Place,
    job_of,
)
from domain.outbox import OutboxRecord, RawRecord
from storage.dead_letter_sql import (
    FIND_LETTER,
    FLAG_JOB,
    GROUP_LETTERS,
    LIST_LETTERS,
    LIST_PLACES,
    NAME_JOB,
    PURGE_LETTERS,
    RENEW_JOB,
    TAKE_LETTER,
)
from storage.dead_letters import record_fields
from storage.job_rows import changed
from storage.outbox_rows import outbox_rows, record_row, write_records
from storage.outgoing import Encode
from storage.pool import Database


class EncodeRedriven(Protocol):
    """Makes the record that a dead letter is sent again as."""

    def __call__(self, record: RawRecord, *, replays: int) -> OutboxRecord:
        """Return ``record`` for its lane, sent again for the ``replays``-th time."""
        ...


class PostgresDeadLetterQueries:
    """``domain.redrive_dead_letters.RedriveStore``, and what a person looks at."""

    def __init__(self, database: Database, *, encode: Encode, encode_redriven: EncodeRedriven) -> None:
        self._database = database
        self._encode = encode
        self._encode_redriven = encode_redriven

    async def page(self, wanted: LetterFilter, *, most: int) -> Sequence[LetterSummary]:
        """Return the letters that ``wanted`` means, newest first, ``most`` at most."""
        rows = await self._rows(LIST_LETTERS, {**_meant(wanted), "most": most})
        return [_summary(row) for row in rows]

    async def find(self, place: Place) -> DeadLetter | None:
        """Return the letter at ``place``."""
        rows = await self._rows(FIND_LETTER, _at(place))
        return _letter(rows[0]) if rows else None

    async def groups(self, wanted: LetterFilter) -> Sequence[LetterGroup]:
        """Count the letters that ``wanted`` means, by topic and class."""
        rows = await self._rows(GROUP_LETTERS, _meant(wanted))
        return [
            LetterGroup(topic=row["topic"], error_class=row["error_class"], count=row["count"])
            for row in rows
        ]

    async def places(self, wanted: LetterFilter, *, after: Place | None, most: int) -> Sequence[Place]:
        """Return the next ``most`` places that ``wanted`` means, in their order, behind ``after``."""
        behind = {
            "after_topic": after.topic if after else None,
            "after_partition": after.partition if after else None,
            "after_offset": after.offset if after else None,
        }
        rows = await self._rows(LIST_PLACES, {**_meant(wanted), **behind, "most": most})
        return [_place(row) for row in rows]

    async def redrive(self, place: Place, *, statuses: Collection[LetterStatus]) -> bool:
        """Mark the letter as redriven and write its record for its lane, in one transaction.

        A dead job that it ordered is queued anew with it. Say whether the letter was in one of ``statuses``.
        """
        params = {**_at(place), "statuses": [status.value for status in statuses]}
        async with self._database.transaction() as conn:
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(TAKE_LETTER, params)
                row = await cursor.fetchone()
            if row is None:
                return False
            record = RawRecord(**record_fields(row))
            await self._renew_job(conn, place, record)
            again = self._encode_redriven(record, replays=row["replays"])
            await write_records(conn, [record_row(again)])
        return True

    async def purge(self, places: Sequence[Place], wanted: LetterFilter) -> int:
        """Delete the letters at ``places`` that ``wanted`` still means; say how many."""
        params = {
            **_meant(wanted),
            "at_topics": [place.topic for place in places],
            "at_partitions": [place.partition for place in places],
            "at_offsets": [place.offset for place in places],
        }
        async with self._database.connection() as conn:
            return (await conn.execute(PURGE_LETTERS, params)).rowcount

    async def _renew_job(self, conn: AsyncConnection, place: Place, record: RawRecord) -> None:
        """Make the job of ``record`` like new if it is dead; one that has ended well is left alone."""
        job = job_of(record)
        if job is None:
            return
        names = {"tenant_id": job.tenant_id, "user_id": job.user_id, "job_id": job.job_id}
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(FLAG_JOB, names)
            if await cursor.fetchone() is None:
                return
            await cursor.execute(RENEW_JOB, names)
            renewed = await cursor.fetchone()
        await conn.execute(NAME_JOB, {**_at(place), "tenant_id": job.tenant_id, "job_id": job.job_id})
        if renewed is not None:
            told = [changed("queued", renewed)]
            rows = outbox_rows(told, self._encode, tenant_id=job.tenant_id, user_id=job.user_id)
            await write_records(conn, rows)

    async def _rows(
        self, statement: LiteralString, params: Mapping[str, object]
    ) -> Sequence[Mapping[str, Any]]:
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, params)
            return await cursor.fetchall()


def _meant(wanted: LetterFilter) -> dict[str, object]:
    return {
        "topics": list(wanted.topics) or None,
        "classes": list(wanted.error_classes) or None,
        "statuses": [status.value for status in wanted.statuses] or None,
        "tenant": wanted.tenant_id,
        "since": wanted.since,
        "until": wanted.until,
    }


def _at(place: Place) -> dict[str, object]:
    return {"topic": place.topic, "partition": place.partition, "offset": place.offset}


def _place(row: Mapping[str, Any]) -> Place:
    return Place(topic=row["topic"], partition=row["partition"], offset=row["offset"])


def _letter(row: Mapping[str, Any]) -> DeadLetter:
    return DeadLetter(summary=_summary(row), record=RawRecord(**record_fields(row)))


def _summary(row: Mapping[str, Any]) -> LetterSummary:
    return LetterSummary(
        place=_place(row),
        error_class=row["error_class"],
        reason=row["reason"],
        status=LetterStatus(row["status"]),
        attempts=row["attempts"],
        replays=row["replays"],
        tenant_id=row["tenant_id"],
        size=row["size"],
        sent_at=row["sent_at"],
        first_failed_at=row["first_failed_at"],
        redriven_at=row["redriven_at"],
        closed_at=row["closed_at"],
    )
