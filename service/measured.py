"""Adapters that count what passes through them; what they wrap knows nothing of metrics."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from clients.llm.provider import Completion, Provider, Request
from consumers.failures import Handled
from consumers.requests import Answered
from consumers.translation import Repairs
from domain.arrivals import Verdict
from domain.build_injection import BuildInjection
from domain.errors import ClaimLostError, ModelRefusedError, UnreadableAnswerError
from domain.injection import Injection, InjectionRequest
from domain.jobs import Claim, Job, JobError, JobOrder, JobOutcome, JobStatus
from domain.judging import Judging, KnownClaims, Vectors
from domain.memory.assertions import Scope
from domain.memory.questions import Question
from domain.memory.slots import Slot
from domain.outbox import RawRecord
from domain.ports import Clock, Embedder, EmbedderInfo, Extractor, Judge, Judged, WindowCandidates
from domain.stores import Extracted, JobStore, LastSeen
from domain.windows import Window
from telemetry.metrics import Metrics

_BURIED_HERE: Final = frozenset({Handled.UNDECODABLE, Handled.INVALID, Handled.PERMANENT, Handled.EXHAUSTED})


class MeasuredInjection:
    """Counts injections by outcome, with their seconds."""

    def __init__(self, build: BuildInjection, metrics: Metrics) -> None:
        self._build = build
        self._metrics = metrics

    async def __call__(self, request: InjectionRequest) -> Injection:
        """Build the injection that ``request`` asks for."""
        outcome = "failed"
        with self._metrics.injection_seconds.time():
            try:
                injection = await self._build(request)
                outcome = "applied" if injection.applied else "empty"
            finally:
                self._metrics.injections.labels(outcome=outcome).inc()
        return injection


class MeasuredProvider:
    """Counts the calls of a language model by how they ended, and times them."""

    def __init__(self, provider: Provider, metrics: Metrics) -> None:
        self._provider = provider
        self._metrics = metrics

    @property
    def name(self) -> str:
        """The name in settings, logs and provenance."""
        return self._provider.name

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        """Return the answer to ``request``."""
        started, outcome = time.perf_counter(), "unavailable"
        try:
            completion = await self._provider.complete(request, timeout=timeout)
            outcome = "answered"
        except UnreadableAnswerError:
            outcome = "unreadable"
            raise
        except ModelRefusedError:
            outcome = "refused"
            raise
        finally:
            provider = _kind_of(self.name)
            self._metrics.model_calls.labels(provider=provider, outcome=outcome).inc()
            self._metrics.model_seconds.labels(provider=provider).observe(time.perf_counter() - started)
        return completion


class MeasuredExtractor:
    """Counts tokens, and windows that rules stood in for."""

    def __init__(self, extractor: Extractor, metrics: Metrics) -> None:
        self._extractor = extractor
        self._metrics = metrics

    async def extract(self, window: Window) -> WindowCandidates:
        """Read ``window``."""
        read = await self._extractor.extract(window)
        provider, usage = _kind_of(read.provider), read.usage
        self._metrics.model_tokens.labels(provider=provider, direction="in").inc(usage.tokens_in)
        self._metrics.model_tokens.labels(provider=provider, direction="out").inc(usage.tokens_out)
        self._metrics.windows_degraded.inc(int(read.degraded))
        return read


class MeasuredJudge:
    """Counts tokens, and judgements by their verdict."""

    def __init__(self, judge: Judge, metrics: Metrics) -> None:
        self._judge = judge
        self._metrics = metrics

    async def judge(self, questions: Sequence[Question]) -> Judged:
        """Answer ``questions``."""
        judged = await self._judge.judge(questions)
        provider, usage = _kind_of(judged.judge), judged.usage
        self._metrics.model_tokens.labels(provider=provider, direction="in").inc(usage.tokens_in)
        self._metrics.model_tokens.labels(provider=provider, direction="out").inc(usage.tokens_out)
        for verdict in judged.verdicts.values():
            self._metrics.judgements.labels(verdict=type(verdict).__name__.lower()).inc()
        self._metrics.judgements.labels(verdict="open").inc(len(questions) - len(judged.verdicts))
        return judged


class MeasuredEmbedder:
    """Counts texts, and the seconds that they take."""

    def __init__(self, embedder: Embedder, metrics: Metrics) -> None:
        self._embedder = embedder
        self._metrics = metrics

    @property
    def info(self) -> EmbedderInfo:
        """The model behind the vectors."""
        return self._embedder.info

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text."""
        with self._metrics.embedding_seconds.time():
            vectors = await self._embedder.embed(texts)
        self._metrics.embedded_texts.inc(len(texts))
        return vectors


class MeasuredJobs:
    """Counts jobs by status, candidates and facts by what became of them."""

    def __init__(self, jobs: JobStore, metrics: Metrics, clock: Clock) -> None:
        self._jobs = jobs
        self._metrics = metrics
        self._clock = clock

    async def claim(self, order: JobOrder, *, deadline: timedelta) -> Claim | None:
        """Take the job."""
        claim = await self._jobs.claim(order, deadline=deadline)
        if claim is not None:
            self._metrics.jobs.labels(status=JobStatus.RUNNING).inc()
            waited = (self._clock.now() - claim.queued_at).total_seconds()
            self._metrics.job_wait_seconds.observe(max(waited, 0.0))
        return claim

    async def keep_windows(self, claim: Claim, windows: Mapping[str, WindowCandidates]) -> None:
        """Keep candidates of windows."""
        await self._jobs.keep_windows(claim, windows)

    async def commit(self, claim: Claim, extracted: Extracted, outcome: JobOutcome) -> Job:
        """Commit what the session said."""
        try:
            job = await self._jobs.commit(claim, extracted, outcome)
        except ClaimLostError:
            self._metrics.claims_lost.inc()
            raise
        self._metrics.jobs.labels(status=job.status).inc()
        for reason, count in extracted.dropped.items():
            self._metrics.candidates.labels(outcome=reason).inc(count)
        self._metrics.candidates.labels(outcome="kept").inc(len(extracted.assertions))
        if job.outcome is not None:
            self._count_facts(job.outcome)
        if job.started_at is not None and job.finished_at is not None:
            self._metrics.job_seconds.observe((job.finished_at - job.started_at).total_seconds())
        return job

    def _count_facts(self, outcome: JobOutcome) -> None:
        self._metrics.candidates.labels(outcome="held").inc(outcome.candidates_held)
        self._metrics.facts.labels(change="created").inc(outcome.facts_created)
        self._metrics.facts.labels(change="reinforced").inc(outcome.facts_reinforced)
        self._metrics.facts.labels(change="superseded").inc(outcome.facts_superseded)

    async def known_claims(
        self, scope: Scope, slots: Collection[Slot], *, beside: UUID | None = None
    ) -> KnownClaims:
        """Return what is said in ``slots``."""
        return await self._jobs.known_claims(scope, slots, beside=beside)

    async def claims_of_session(self, order: JobOrder) -> Vectors:
        """Return the claims of a session."""
        return await self._jobs.claims_of_session(order)

    async def commit_judging(self, order: JobOrder, judging: Judging) -> None:
        """Keep what was judged."""
        await self._jobs.commit_judging(order, judging)

    async def refold(self, order: JobOrder) -> None:
        """Fold what commands touched."""
        await self._jobs.refold(order)

    async def put_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> None:
        """Give the job back."""
        await self._jobs.put_back(claim, due_in=due_in, error=error, counted=counted)
        self._metrics.jobs.labels(status=JobStatus.RETRYING).inc()

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order the job again for later."""
        await self._jobs.put_off(order, job_seconds=job_seconds)

    async def gate(self, claim: Claim, reason: str) -> None:
        """End the job without an extraction."""
        await self._jobs.gate(claim, reason)
        self._metrics.jobs.labels(status=JobStatus.GATED).inc()

    async def bury(self, claim: Claim, record: RawRecord, *, error: JobError) -> None:
        """End the job as dead."""
        await self._jobs.bury(claim, record, error=error)
        self._metrics.jobs.labels(status=JobStatus.DEAD).inc()
        error_class = Handled.PERMANENT if error.code == "permanent" else Handled.EXHAUSTED
        self._metrics.dead_letters.labels(error_class=error_class).inc()

    async def requeue_stranded(self, *, older_than: timedelta) -> int:
        """Order stranded jobs again."""
        return await self._jobs.requeue_stranded(older_than=older_than)


class NotedFacts:
    """Collects facts that were put into prompts and stamps them in batches, off the path of a reply."""

    def __init__(self, last_seen: LastSeen, clock: Clock) -> None:
        self._last_seen = last_seen
        self._clock = clock
        self._noted: defaultdict[UUID, set[UUID]] = defaultdict(set)

    def note(self, user_id: UUID, fact_ids: Collection[UUID]) -> None:
        """Remember that ``fact_ids`` were just shown."""
        self._noted[user_id].update(fact_ids)

    async def flush(self) -> None:
        """Stamp what was noted; what cannot be stamped now is stamped with the next batch."""
        noted, self._noted = self._noted, defaultdict(set)
        try:
            await self._last_seen.stamp(noted, at=self._clock.now())
        except BaseException:
            for user_id, facts in noted.items():
                self._noted[user_id] |= facts
            raise


class Counted:
    """The listeners that consumers and the responder tell what happened."""

    def __init__(self, metrics: Metrics, *, topic_prefix: str) -> None:
        self._metrics = metrics
        self._prefix = topic_prefix

    def repairs(self, repairs: Repairs) -> None:
        """Count what was mended on the way in."""
        for repair, count in repairs.items():
            self._metrics.repairs.labels(repair=repair).inc(count)

    def verdict(self, verdict: Verdict) -> None:
        """Count what an arrival did."""
        self._metrics.sessions.labels(verdict=verdict).inc()

    def handled(self, record: RawRecord, handled: Handled) -> None:
        """Count how the handling of a record ended."""
        topic = record.topic.removeprefix(self._prefix)
        self._metrics.records_handled.labels(topic=topic, outcome=handled).inc()
        if handled in _BURIED_HERE:
            self._metrics.dead_letters.labels(error_class=handled).inc()

    def answered(self, topic: str, answered: Answered, seconds: float) -> None:
        """Count how a request ended."""
        topic = topic.removeprefix(self._prefix)
        self._metrics.requests.labels(topic=topic, outcome=answered).inc()
        self._metrics.request_seconds.labels(topic=topic).observe(seconds)


def _kind_of(provider: str) -> str:
    """Return the wire format in a provider's name, which may hold a model's too."""
    return provider.partition("/")[0]
