"""Answer questions about facts and jobs, told apart by their ``type``."""

from typing import Final, Protocol, assert_never
from uuid import UUID

from consumers.decoding import decode
from consumers.translation import avatar_of, user_of
from domain.answer_query import FactsQuery
from domain.errors import InvalidInputError
from domain.jobs import Job
from domain.outbox import RawRecord
from domain.stores import FactPage
from producers.wire_json import fact_page_body, job_body
from schemas import queries as wire

_DEFAULT_STATUSES: Final = frozenset({"active"})


class Queries(Protocol):
    """The use case that reads."""

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        """Return a job by its id, or the newest of a session."""
        ...

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return one page of facts."""
        ...


class QueryAnswers:
    """Decodes a query and returns the result of its reply."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def __call__(self, record: RawRecord) -> object:
        """Return what ``record`` asks for.

        Raises:
            InvalidInputError: the record is no query that is known.
            NotFoundError: what it asks for does not exist.
            InfrastructureError: the database did not answer.
        """
        kind = wire.QUERIES.get(decode(wire.QueryType, record.value).type)
        if kind is None:
            known = ", ".join(wire.QUERIES)
            raise InvalidInputError(f"type: expected one of {known}", field="type")
        query = decode(kind, record.value)
        match query:
            case wire.JobsGet():
                job = await self._queries.job(
                    query.tenant_id, job_id=query.job_id, session_id=query.session_id
                )
                return job_body(job)
            case wire.FactsList():
                return fact_page_body(await self._queries.facts(_facts_query(query)))
            case unreachable:
                assert_never(unreachable)


def _facts_query(query: wire.FactsList) -> FactsQuery:
    match query.status:
        case None:
            statuses = _DEFAULT_STATUSES
        case str() as status:
            statuses = frozenset({status})
        case several:
            statuses = frozenset(several)
    return FactsQuery(
        tenant_id=query.tenant_id,
        user=user_of(query),
        avatar_id=avatar_of(query),
        statuses=statuses,
        categories=frozenset(query.types or ()),
        cursor=query.cursor,
        limit=query.limit,
    )
