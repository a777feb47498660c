"""Answer questions about facts and jobs, told apart by their ``type``."""

from collections.abc import Sequence
from typing import Final, Protocol, assert_never
from uuid import UUID

from consumers.decoding import decode
from consumers.translation import avatar_of, moment_of, user_of
from domain.answer_query import FactsQuery
from domain.build_injection import pack
from domain.conversation import UserRef
from domain.errors import InvalidInputError
from domain.gather_context import Gathered
from domain.jobs import Job
from domain.listings import FactStory, Listed, ListingPage, ListingQuery, memory_types
from domain.outbox import RawRecord
from domain.search_memory import FoundFact, SearchRequest
from domain.stores import FactPage
from producers.wire_json import (
    context_body,
    fact_page_body,
    fact_with_evidence,
    found_page_body,
    job_body,
    story_body,
)
from schemas import queries as wire

_MOST_RELEVANT: Final = 10
_LISTED: Final = {
    "sessions.list": Listed.SESSIONS,
    "jobs.list": Listed.JOBS,
    "candidates.list": Listed.CANDIDATES,
    "clarifications.list": Listed.CLARIFICATIONS,
    "messages.recent": Listed.MESSAGES,
}
_DEFAULT_STATUSES: Final = frozenset({"active"})


class Queries(Protocol):
    """The use case that reads."""

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        """Return a job by its id, or the newest of a session."""
        ...

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return one page of facts."""
        ...


class Searches(Protocol):
    """The use case that finds."""

    async def __call__(self, request: SearchRequest) -> Sequence[FoundFact]:
        """Return what is relevant to ``request``, best first."""
        ...


class Lists(Protocol):
    """The use case of lists and of one fact's story."""

    async def page(self, query: ListingQuery) -> ListingPage:
        """Return one page."""
        ...

    async def story(self, tenant_id: str, user: UserRef, avatar_id: UUID, fact_id: UUID) -> FactStory:
        """Return a fact with its evidence and its versions."""
        ...


class Gathers(Protocol):
    """The use case that gathers what a prompt should know."""

    async def __call__(self, request: SearchRequest) -> Gathered:
        """Return core facts and what is relevant to the question of ``request``."""
        ...


class QueryAnswers:
    """Decodes a query and returns the result of its reply."""

    def __init__(
        self, queries: Queries, *, search: Searches, context: Gathers, lists: Lists, char_budget: int
    ) -> None:
        self._queries = queries
        self._lists = lists
        self._search = search
        self._context = context
        self._char_budget = char_budget

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
        return await self._answer(decode(kind, record.value))

    async def _answer(self, query: wire.Query) -> object:
        result: object
        match query:
            case wire.JobsGet():
                result = job_body(
                    await self._queries.job(query.tenant_id, job_id=query.job_id, session_id=query.session_id)
                )
            case wire.FactsList():
                result = fact_page_body(await self._queries.facts(_facts_query(query)))
            case wire.FactsSearch() | wire.FactsCore() | wire.ContextGet():
                result = await self._found(query)
            case wire.FactsGet() | wire.FactsHistory():
                result = await self._told(query)
            case wire.TypesList():
                result = {"items": memory_types(), "next_cursor": None}
            case _:
                page = await self._lists.page(_listing(query))
                result = {"items": page.items, "next_cursor": page.next_cursor}
        return result

    async def _found(self, query: wire.FactsSearch | wire.FactsCore | wire.ContextGet) -> object:
        match query:
            case wire.FactsSearch():
                return found_page_body(await self._search(_search(query, query.query, limit=query.limit)))
            case wire.FactsCore():
                gathered = await self._context(_search(query, "", limit=query.limit))
                return fact_page_body(FactPage(items=gathered.core[: query.limit], next_cursor=None))
            case wire.ContextGet():
                gathered = await self._context(_search(query, query.query or "", limit=_MOST_RELEVANT))
                budget = self._char_budget if query.char_budget is None else query.char_budget
                return context_body(gathered, *pack(gathered.ranked(), budget))
            case unreachable:
                assert_never(unreachable)

    async def _told(self, query: wire.FactsGet | wire.FactsHistory) -> object:
        story = await self._lists.story(query.tenant_id, user_of(query), avatar_of(query), query.fact_id)
        return fact_with_evidence(story) if isinstance(query, wire.FactsGet) else story_body(story)


def _search(
    query: wire.FactsSearch | wire.FactsCore | wire.ContextGet, text: str, *, limit: int
) -> SearchRequest:
    categories = query.types if isinstance(query, wire.FactsSearch) else None
    topics = None if isinstance(query, wire.FactsCore) else query.topics
    return SearchRequest(
        tenant_id=query.tenant_id,
        user=user_of(query),
        avatar_id=avatar_of(query),
        query=text,
        categories=frozenset(categories or ()),
        topics=frozenset(topics or ()),
        limit=limit,
        as_of=moment_of(query.as_of),
    )


def _listing(query: wire.AnyListing) -> ListingQuery:
    session_id = query.session_id if isinstance(query, wire.JobsList | wire.MessagesRecent) else None
    return ListingQuery(
        what=_LISTED[query.type],
        tenant_id=query.tenant_id,
        user=user_of(query),
        avatar_id=avatar_of(query),
        session_id=session_id,
        cursor=query.cursor,
        limit=query.limit,
    )


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
