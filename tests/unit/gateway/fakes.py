"""Use cases and parts that HTTP is tested over, written by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from domain.answer_query import FactsQuery
from domain.arrivals import Acceptance, EndedConversation, Verdict
from domain.errors import NotFoundError
from domain.injection import Injection, InjectionRequest
from domain.jobs import Job, JobStatus, job_id_of
from domain.memory.facts import FactRow
from domain.memory.projection import Status
from domain.memory.stances import Mode
from domain.stores import FactPage
from gateway.parts import ComponentState

USER = UUID("11111111-1111-4111-8111-111111111111")
AVATAR = UUID("22222222-2222-4222-8222-222222222222")
SESSION = UUID("33333333-3333-4333-8333-333333333333")
FACT = UUID("44444444-4444-4444-8444-444444444444")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fact_row(value: str = "Berlin") -> FactRow:
    return FactRow(
        fact_id=FACT,
        tenant_id="default",
        user_id=str(USER),
        avatar_id=str(AVATAR),
        category="personal_info",
        fact_key="home_city",
        fact_value=value,
        confidence=0.9,
        status=Status.ACTIVE,
        source_session_id=str(SESSION),
        source_message_ids=("#0",),
        source_excerpt=f"I live in {value}",
        dedup_hash="ab" * 32,
        slot="self/home_city",
        mode=Mode.HOLDS,
        norm=value.casefold(),
        content=f"Lives in {value}.",
        importance=7.0,
        reinforced=0,
        first_said_at=NOON,
        last_said_at=NOON,
        valid_from=NOON,
        valid_to=None,
        intervals=((NOON, None),),
        expires_at=None,
        superseded_by=None,
        merged_into=None,
        names=frozenset(),
        asserted_by="user",
        extraction_method="rules",
        model=None,
        spec_version=None,
        reasoning="",
    )


def job(status: JobStatus, *, revision: int = 1) -> Job:
    return Job(
        job_id=job_id_of("default", SESSION, "live"),
        tenant_id="default",
        user_id=USER,
        avatar_id=AVATAR,
        session_id=SESSION,
        generation="live",
        status=status,
        revision=revision,
        gate=None,
        plan="starter",
        attempts=1,
        queued_at=NOON,
        started_at=None,
        finished_at=None,
        next_attempt_at=None,
        outcome=None,
        error=None,
    )


class FakeClock:
    def __init__(self, now: datetime = NOON) -> None:
        self.moment = now

    def now(self) -> datetime:
        return self.moment


class FakeInjections:
    def __init__(self, injection: Injection | None = None) -> None:
        self.injection = injection or Injection(text="", facts_count=0)
        self.asked: list[InjectionRequest] = []
        self.failure: Exception | None = None

    async def __call__(self, request: InjectionRequest) -> Injection:
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        return self.injection


class FakeMemory:
    """Intake, jobs and facts of one session; the job goes through ``statuses``, one a look."""

    def __init__(self, *statuses: JobStatus, rows: Sequence[FactRow] = ()) -> None:
        self.jobs = [job(status) for status in statuses]
        self.rows = tuple(rows)
        self.accepted: list[EndedConversation] = []
        self.verdict = Verdict.ACCEPTED
        self.revision = 1
        self.queries: list[FactsQuery] = []
        self.forgotten: list[tuple[str, UUID, UUID | None]] = []
        self.known = {FACT}

    async def accept(self, conversation: EndedConversation) -> Acceptance:
        self.accepted.append(conversation)
        return Acceptance(
            verdict=self.verdict,
            job_id=job_id_of(conversation.tenant_id, conversation.session_id, "live"),
            user_id=USER,
            revision=self.revision,
        )

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        if not self.jobs or job_id is None or session_id is not None:
            raise NotFoundError("no such job")
        now = self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]
        return replace(now, tenant_id=tenant_id, job_id=job_id)

    async def facts(self, query: FactsQuery) -> FactPage:
        self.queries.append(query)
        return FactPage(items=self.rows, next_cursor="next")

    async def session_facts(self, tenant_id: str, user_id: UUID, session_id: UUID) -> Sequence[FactRow]:
        is_known = (tenant_id, user_id, session_id) == (self.accepted[-1].tenant_id, USER, SESSION)
        return self.rows if is_known else ()

    async def forget(self, tenant_id: str, fact_id: UUID, user_id: UUID | None) -> bool:
        self.forgotten.append((tenant_id, fact_id, user_id))
        return fact_id in self.known


class FakeReadiness:
    def __init__(self, states: Mapping[str, ComponentState] | None = None) -> None:
        self.states = states or {name: ComponentState(is_ready=True) for name in ("database", "broker")}

    async def __call__(self) -> Mapping[str, ComponentState]:
        return self.states
