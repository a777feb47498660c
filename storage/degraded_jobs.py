"""Jobs that rules did in the place of a model."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, LiteralString

from psycopg.rows import dict_row

from domain.redo_degraded import JobRef, Redone
from storage.job_rows import JOB_COLUMNS, ordered
from storage.json_text import rows_text
from storage.outbox_rows import outbox_rows, write_records
from storage.outgoing import Outgoing
from storage.pool import Database

TAKE_DEGRADED: Final[LiteralString] = (
    """
    UPDATE lis.extraction_jobs AS j
       SET status = 'queued', lane = 'replay', attempts = 0, queued_at = now(), finished_at = NULL
     WHERE (j.tenant_id, j.job_id) IN (
               SELECT o.tenant_id, o.job_id
                 FROM lis.extraction_jobs AS o
                WHERE o.status = 'completed'
                  AND (o.outcome ->> 'degraded')::boolean
                  AND o.finished_at < now() - %(older_than)s::interval
                ORDER BY o.finished_at
                LIMIT %(most)s
                  FOR UPDATE SKIP LOCKED)
    RETURNING """  # noqa: S608 - literals alone
    + JOB_COLUMNS
)

READ_REDONE: Final[LiteralString] = """
    SELECT coalesce(bool_or(j.status IN ('queued', 'running', 'retrying')), false) AS is_under_way,
           coalesce(bool_or(j.status = 'completed' AND (j.outcome ->> 'degraded')::boolean), false)
               AS is_by_rules
      FROM json_to_recordset(%(jobs)s::json) AS g (tenant_id text, job_id uuid)
      JOIN lis.extraction_jobs AS j ON j.tenant_id = g.tenant_id AND j.job_id = g.job_id
"""


class PostgresDegradedJobs:
    """``domain.redo_degraded.DegradedJobs``."""

    def __init__(self, database: Database, *, outgoing: Outgoing) -> None:
        self._database = database
        self._outgoing = outgoing

    async def order_again(self, *, older_than: timedelta, most: int) -> Sequence[JobRef]:
        """Order again, in the replay lane, the ``most`` that were done longest ago; name them."""
        async with self._database.transaction() as conn:
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(TAKE_DEGRADED, {"older_than": older_than, "most": most})
                jobs = await cursor.fetchall()
            for job in jobs:
                rows = outbox_rows(
                    [ordered(job)], self._outgoing.encode, tenant_id=job["tenant_id"], user_id=job["user_id"]
                )
                await write_records(conn, rows)
        self._outgoing.wake()
        return [(job["tenant_id"], job["job_id"]) for job in jobs]

    async def redone(self, jobs: Sequence[JobRef]) -> Redone:
        """Say what became of ``jobs`` as a whole: one by rules is enough for ``BY_RULES``."""
        rows = [{"tenant_id": tenant_id, "job_id": job_id} for tenant_id, job_id in jobs]
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(READ_REDONE, {"jobs": rows_text(rows)})
            found = await cursor.fetchone()
        if found is None or found["is_under_way"]:
            return Redone.UNDER_WAY
        return Redone.BY_RULES if found["is_by_rules"] else Redone.BY_A_MODEL
