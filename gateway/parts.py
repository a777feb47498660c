"""What HTTP is put together from: use cases, translations and limits, handed in."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

from domain.answer_query import FactsQuery
from domain.arrivals import Acceptance, EndedConversation
from domain.injection import Injection, InjectionRequest
from domain.jobs import Job
from domain.memory.facts import FactRow
from domain.ports import Clock
from domain.stores import FactPage
from telemetry.metrics import Metrics

DEFAULT_TENANT: Final = "default"


class BuildsInjections(Protocol):
    """Builds the text for a prompt."""

    async def __call__(self, request: InjectionRequest) -> Injection:
        """Return the text for ``request`` and what it was made of."""
        ...


class AcceptsConversations(Protocol):
    """Takes in ended conversations."""

    async def __call__(self, conversation: EndedConversation) -> Acceptance:
        """Store ``conversation`` and say what its arrival did."""
        ...


class AnswersQueries(Protocol):
    """Reads jobs and facts."""

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        """Return a job by its id, or the newest of a session."""
        ...

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return one page of the facts that ``query`` asks for."""
        ...

    async def session_facts(self, tenant_id: str, user_id: UUID, session_id: UUID) -> Sequence[FactRow]:
        """Return the facts that ``session_id`` is evidence of."""
        ...


class ForgetsFacts(Protocol):
    """Hides a fact and what was said for it up to now."""

    async def __call__(self, tenant_id: str, fact_id: UUID, user_id: UUID | None) -> bool:
        """Forget the fact, of ``user_id`` where it is given; say whether the tenant had an active one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentState:
    """Whether a part of the service can do its work; ``detail`` is a fixed phrase: anybody may read it."""

    is_ready: bool
    detail: str = ""


class Readiness(Protocol):
    """Looks at the parts of the service."""

    async def __call__(self) -> Mapping[str, ComponentState]:
        """Return the state of each part: database, broker, relay, consumers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A bearer token and the only tenant that it reaches."""

    secret: str = field(repr=False)
    tenant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeParts:
    """What the routes about the service itself use; all of it is there before database and broker are.

    ``other_metrics`` gives the metrics of the processes that belong to this one, as their texts.
    """

    readiness: Readiness
    metrics: Metrics
    body_limit: int = 8_000_000
    tokens: tuple[AccessToken, ...] = ()
    other_metrics: Callable[[], Sequence[str]] = tuple
    asyncapi: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts(EdgeParts):
    """Everything that the routes use.

    ``answer_within_s`` is how long ``POST /extract`` may take: the model's time-out and five seconds more.
    """

    inject: BuildsInjections
    accept: AcceptsConversations
    answers: AnswersQueries
    forget: ForgetsFacts
    clock: Clock
    pause: Callable[[float], Awaitable[None]]
    answer_within_s: float = 35.0
