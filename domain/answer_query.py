"""Answer questions about jobs and facts."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from domain.errors import InvalidInputError, NotFoundError
from domain.jobs import Job
from domain.memory.facts import FactRow
from domain.stores import FactPage, FactsQuery, Reads

__all__ = ["MOST_ROWS", "AnswerQuery", "FactsQuery"]

MOST_ROWS: Final = 500


class AnswerQuery:
    """Read jobs and facts for the responder and for HTTP."""

    def __init__(self, *, reads: Reads) -> None:
        self._reads = reads

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        """Return the job with ``job_id``, or the newest one of ``session_id``.

        Raises:
            InvalidInputError: neither id was given.
            NotFoundError: the tenant has no such job.
        """
        if job_id is None and session_id is None:
            raise InvalidInputError("one of job_id and session_id is needed", field="job_id")
        job = await self._reads.job(tenant_id, job_id=job_id, session_id=session_id)
        if job is None:
            raise NotFoundError("no such job")
        return job

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return one page of the facts that ``query`` asks for.

        Raises:
            InvalidInputError: the limit is not between 1 and 500.
        """
        if not 1 <= query.limit <= MOST_ROWS:
            raise InvalidInputError(f"limit: expected 1 to {MOST_ROWS}", field="limit")
        return await self._reads.facts(query)

    async def session_facts(self, tenant_id: str, user_id: UUID, session_id: UUID) -> Sequence[FactRow]:
        """Return the facts that ``session_id`` is evidence of."""
        return await self._reads.session_facts(tenant_id, user_id, session_id)
