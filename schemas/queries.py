"""Questions about facts and jobs, told apart by ``type``."""

from typing import Final, Literal, get_args
from uuid import UUID

from pydantic import Field, model_validator

from schemas.conversation import DEFAULT_TENANT, Scoped
from schemas.wire import Identifier, Moment, Received

FactStatus = Literal["active", "superseded", "deleted", "expired"]


class JobsGet(Received):
    """Ask for a job by its id, or for the newest of a session."""

    type: Literal["jobs.get"]
    tenant_id: Identifier = DEFAULT_TENANT
    job_id: UUID | None = None
    session_id: UUID | None = None

    @model_validator(mode="after")
    def _names_a_job(self) -> "JobsGet":
        if self.job_id is None and self.session_id is None:
            raise ValueError("expected one of job_id and session_id")
        return self


class ScopedQuery(Scoped):
    """A question about one scope."""

    @classmethod
    def kind(cls) -> str:
        """Return the ``type`` of such a question."""
        (kind,) = get_args(cls.model_fields["type"].annotation)
        return str(kind)


class FactsList(ScopedQuery):
    """Ask for the facts of a scope, page by page; without ``status`` the active ones."""

    type: Literal["facts.list"]
    status: FactStatus | list[FactStatus] | None = None
    types: list[str] | None = None
    cursor: str | None = Field(default=None, max_length=500)
    limit: int = Field(default=100, ge=1, le=500)


class FactsSearch(ScopedQuery):
    """Ask which facts are about something; ``topics`` names what it is about, ``types`` the memory types."""

    type: Literal["facts.search"]
    query: str = Field(min_length=1, max_length=8_000)
    types: list[str] | None = None
    topics: list[str] | None = None
    limit: int = Field(default=6, ge=1, le=50)
    as_of: Moment | None = None


class FactsCore(ScopedQuery):
    """Ask for the important and certain facts of a scope."""

    type: Literal["facts.core"]
    limit: int = Field(default=10, ge=1, le=50)
    as_of: Moment | None = None


class ContextGet(ScopedQuery):
    """Ask for what a prompt should know: core facts, and what is relevant to ``query``."""

    type: Literal["context.get"]
    query: str | None = Field(default=None, max_length=8_000)
    session_id: UUID | None = None
    topics: list[str] | None = None
    char_budget: int | None = Field(default=None, ge=0, le=1_000_000)
    as_of: Moment | None = None


class FactsGet(ScopedQuery):
    """Ask for one fact with its evidence."""

    type: Literal["facts.get"]
    fact_id: UUID


class FactsHistory(ScopedQuery):
    """Ask for what became of one fact, and on what evidence."""

    type: Literal["facts.history"]
    fact_id: UUID


class Listing(ScopedQuery):
    """What every list takes."""

    cursor: str | None = Field(default=None, max_length=500)
    limit: int = Field(default=100, ge=1, le=500)


class SessionsList(Listing):
    """Ask for the conversations of a scope, newest first."""

    type: Literal["sessions.list"]


class JobsList(Listing):
    """Ask for the jobs of a scope, newest first."""

    type: Literal["jobs.list"]
    session_id: UUID | None = None


class CandidatesList(Listing):
    """Ask for what waits for a second saying."""

    type: Literal["candidates.list"]


class ClarificationsList(Listing):
    """Ask for the questions that the user could settle."""

    type: Literal["clarifications.list"]


class MessagesRecent(Listing):
    """Ask for the last messages, of one conversation or of all."""

    type: Literal["messages.recent"]
    session_id: UUID | None = None
    limit: int = Field(default=20, ge=1, le=500)


class TypesList(Received):
    """Ask for the memory types."""

    type: Literal["types.list"]


class QueryType(Received):
    """The part of a query that tells which one it is."""

    type: str


AnyListing = SessionsList | JobsList | CandidatesList | ClarificationsList | MessagesRecent
Query = (
    JobsGet
    | FactsList
    | FactsSearch
    | FactsCore
    | ContextGet
    | FactsGet
    | FactsHistory
    | AnyListing
    | TypesList
)

QUERIES: Final[dict[str, type[Query]]] = {
    "jobs.get": JobsGet,
    "facts.list": FactsList,
    "facts.search": FactsSearch,
    "facts.core": FactsCore,
    "context.get": ContextGet,
    "facts.get": FactsGet,
    "facts.history": FactsHistory,
    "sessions.list": SessionsList,
    "jobs.list": JobsList,
    "candidates.list": CandidatesList,
    "clarifications.list": ClarificationsList,
    "messages.recent": MessagesRecent,
    "types.list": TypesList,
}
