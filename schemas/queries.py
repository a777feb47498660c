"""Questions about facts and jobs, told apart by ``type``."""

from typing import Final, Literal
from uuid import UUID

from pydantic import Field, model_validator

from schemas.conversation import DEFAULT_TENANT, Scoped
from schemas.wire import Identifier, Received

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


class FactsList(Scoped):
    """Ask for the facts of a scope, page by page; without ``status`` the active ones."""

    type: Literal["facts.list"]
    status: FactStatus | list[FactStatus] | None = None
    types: list[str] | None = None
    cursor: str | None = Field(default=None, max_length=500)
    limit: int = Field(default=100, ge=1, le=500)


class QueryType(Received):
    """The part of a query that tells which one it is."""

    type: str


QUERIES: Final[dict[str, type[JobsGet] | type[FactsList]]] = {"jobs.get": JobsGet, "facts.list": FactsList}
