"""Extract one session: claim, read, check, commit (docs/architecture/extraction.md)."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final, assert_never

from domain.arrivals import is_incomplete
from domain.candidates import Candidate
from domain.errors import (
    ClaimLostError,
    EmbedderUnavailableError,
    ModelUnavailableError,
    PermanentError,
    SlotsTakenError,
    UnreadableAnswerError,
)
from domain.follow_up import FollowUp
from domain.jobs import Claim, JobError, JobKind, JobOrder, JobOutcome
from domain.judging import AskJudge, Judging, KnownClaims, can_raise
from domain.letting_go import LettingGo
from domain.memory.assertions import Assertion
from domain.memory.evidence import assertions_of
from domain.memory.sentences import claim_sentence
from domain.memory.stances import Stance
from domain.outbox import RawRecord
from domain.ports import Clock, Embedder, Extractor, WindowCandidates
from domain.replays import ReplayMode
from domain.stores import Extracted, JobStore
from domain.validation import Dropped, Kept, Pending, Policy, check, masked
from domain.windows import Window, window_digest, windows_of

MOST_GRACES: Final = 10
MOST_TAKEOVERS: Final = 5


class Ending(StrEnum):
    """What became of an order: nothing is left to do, it was put back for later, or its job is dead.

    A job ``BEYOND_SLOTS`` has not begun: its tenant has as many running as it may, and it is to be put off.
    """

    DONE = "done"
    PUT_BACK = "put_back"
    BEYOND_SLOTS = "beyond_slots"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """How long and how often extraction tries."""

    deadline: timedelta = timedelta(seconds=300)
    grace: timedelta = timedelta(seconds=30)
    attempts: int = 3
    attempt_delay: timedelta = timedelta(seconds=60)
    outage_delay: timedelta = timedelta(seconds=15)
    window_chars: int = 12_000
    needs_vectors: bool = True


class ExtractSession:
    """Turn a due job into committed memory, once; what cannot be done now is given back."""

    def __init__(  # noqa: PLR0913 - what one process works with
        self,
        *,
        jobs: JobStore,
        extractor: Extractor,
        embedder: Embedder,
        policy: Policy,
        limits: ExtractionLimits,
        clock: Clock,
        ask_judge: AskJudge | None = None,
        follow_up: FollowUp | None = None,
    ) -> None:
        self._follow_up = follow_up
        self._ask_judge = ask_judge
        self._jobs = jobs
        self._extractor = extractor
        self._embedder = embedder
        self._policy = policy
        self._limits = limits
        self._clock = clock
        self._let_go = LettingGo(jobs)

    async def __call__(self, order: JobOrder, record: RawRecord) -> Ending:
        """Do what ``order`` asks for; ``record`` is kept as the dead letter of a job that dies.

        Raises:
            InfrastructureError: the database is away; the same call may be made again.
        """
        match order.kind:
            case JobKind.EXTRACT:
                return await self._extract(order, record)
            case JobKind.FOLD:
                await self._jobs.refold(order)
                return Ending.DONE
            case JobKind.JUDGE:
                await self._judge(order)
                return Ending.DONE
            case JobKind.FOLLOW_UP:
                if self._follow_up is not None:
                    await self._follow_up(order)
                return Ending.DONE
            case unreachable:
                assert_never(unreachable)

    async def _extract(self, order: JobOrder, record: RawRecord) -> Ending:
        try:
            claim = await self._jobs.claim(order, deadline=self._limits.deadline)
        except SlotsTakenError:
            return Ending.BEYOND_SLOTS
        if claim is None:
            return Ending.DONE
        if claim.takeovers > MOST_TAKEOVERS:
            # Whoever tries it dies of it, and everything else in that process with it.
            error = JobError(
                code="worker_lost", message=f"{claim.takeovers} workers in a row died with the job"
            )
            return await self._bury(claim, record, error)
        return await self._without_extraction(claim) or await self._attempt(claim, record)

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order a job that may not begin again, for when its tenant is expected to have a slot.

        ``job_seconds`` is how long a job takes at the moment. It costs the job no attempt.

        Raises:
            InfrastructureError: the database is away; the same call may be made again.
        """
        await self._jobs.put_off(order, job_seconds=job_seconds)

    async def _attempt(self, claim: Claim, record: RawRecord) -> Ending:
        try:
            async with asyncio.timeout(self._limits.deadline.total_seconds()):
                await self._remember(claim)
        except asyncio.CancelledError:
            await self._let_go(claim)
            raise
        except ClaimLostError:
            return Ending.DONE
        except (ModelUnavailableError, EmbedderUnavailableError) as exc:
            error = JobError(code="upstream_unavailable", message=str(exc))
            return await self._give_back(claim, due_in=self._limits.outage_delay, error=error, counted=False)
        except TimeoutError:
            error = JobError(code="deadline_exceeded", message="the job took too long")
            return await self._fail(claim, record, error)
        except PermanentError as exc:
            return await self._bury(claim, record, JobError(code="permanent", message=str(exc)))
        except UnreadableAnswerError as exc:
            return await self._fail(claim, record, JobError(code="unreadable_answer", message=str(exc)))
        return Ending.DONE

    async def fail(self, order: JobOrder, record: RawRecord, error: JobError) -> Ending:
        """Count a failed attempt that ended in an unforeseen way, so that it stops only its own job."""
        try:
            claim = await self._jobs.claim(order, deadline=self._limits.deadline)
        except SlotsTakenError:
            return Ending.BEYOND_SLOTS
        return Ending.DONE if claim is None else await self._fail(claim, record, error)

    async def _without_extraction(self, claim: Claim) -> Ending | None:
        """Put off a session whose messages have not all come; end one that stays empty."""
        found, announced = len(claim.session.messages), claim.message_count
        waited = self._clock.now() - claim.queued_at
        if (
            announced is not None
            and is_incomplete(found, announced)
            and waited < MOST_GRACES * self._limits.grace
        ):
            return await self._give_back(claim, due_in=self._limits.grace, error=None, counted=False)
        if found == 0:
            await self._jobs.gate(claim, "empty")
            return Ending.DONE
        return None

    async def _remember(self, claim: Claim) -> None:
        read = await self._read(claim)
        kept, dropped = self._checked(claim, read)
        assertions = assertions_of(claim.scope, claim.session.session_id, claim.order.generation, kept)
        answers = {digest: answer for digest, _, answer in read}
        vectors = await self._vectors(claim, assertions, answers)
        judging = await self._judging(claim, assertions, vectors, is_away=_is_degraded(answers.values()))
        outcome = _outcome([answer for _, _, answer in read], dropped, judging)
        extracted = Extracted(
            assertions=tuple(assertions),
            windows={digest: answer for digest, answer in answers.items() if not answer.degraded},
            vectors=vectors,
            model=self._embedder.info.model,
            dropped=dropped,
            judging=judging,
            is_followed_up=self._is_followed_up(claim),
        )
        await self._jobs.commit(claim, extracted, outcome)

    def _is_followed_up(self, claim: Claim) -> bool:
        """Say whether something follows the commit; nothing does where nobody is served by it."""
        is_served = claim.replay_mode is not ReplayMode.SHADOW
        follow_up = self._follow_up
        return is_served and follow_up is not None and follow_up.is_due_after(len(claim.session.messages))

    async def _read(self, claim: Claim) -> Sequence[tuple[str, Window, WindowCandidates]]:
        """Read each window, or take what an earlier attempt or revision read."""
        session = replace(claim.session, messages=masked(claim.session.messages))
        windows = [
            replace(window, may_be_sensitive=bool(claim.allowed_categories))
            for window in windows_of(session, max_chars=self._limits.window_chars)
        ]
        read: list[tuple[str, Window, WindowCandidates]] = []
        for window in windows:
            digest = window_digest(window)
            known = claim.kept.get(digest)
            answer = known if known is not None else await self._extractor.extract(window)
            if known is None and len(windows) > 1 and not answer.degraded:
                await self._jobs.keep_windows(claim, {digest: answer})
            read.append((digest, window, answer))
        return read

    def _checked(
        self, claim: Claim, read: Sequence[tuple[str, Window, WindowCandidates]]
    ) -> tuple[list[Candidate], Mapping[str, int]]:
        allowed = self._policy.allowed_categories | claim.allowed_categories
        policy = replace(self._policy, allowed_categories=allowed)
        kept: list[Candidate] = []
        dropped: Counter[str] = Counter()
        for _, window, answer in read:
            for candidate in answer.candidates:
                match check(candidate, window, policy):
                    case Kept(found) | Pending(found):
                        kept.append(found)
                    case Dropped(reason):
                        dropped[reason.value] += 1
                    case unreachable:
                        assert_never(unreachable)
        return kept, dropped

    async def _vectors(
        self, claim: Claim, assertions: Sequence[Assertion], answers: Mapping[str, WindowCandidates]
    ) -> Mapping[str, bytes]:
        """Embed the sentence of each claim; what the model said is kept before the job is given back."""
        texts = sorted({claim_sentence(one.claim) for one in assertions if one.stance is not Stance.FORGETS})
        if not texts:
            return {}
        try:
            return dict(zip(texts, await self._embedder.embed(texts), strict=True))
        except EmbedderUnavailableError:
            if self._limits.needs_vectors:
                await self._jobs.keep_windows(claim, answers)
                raise
            return {}

    async def _judging(
        self,
        claim: Claim,
        assertions: Sequence[Assertion],
        vectors: Mapping[str, bytes],
        *,
        is_away: bool,
    ) -> Judging:
        """Ask what the session's claims raise; a shadow raises nothing, since its answers would be served."""
        raised = {
            one.claim: vectors.get(claim_sentence(one.claim))
            for one in assertions
            if one.stance is not Stance.FORGETS
        }
        if self._ask_judge is None or claim.replay_mode is ReplayMode.SHADOW or not can_raise(raised):
            return Judging()
        slots = {one.slot for one in raised}
        known = (
            await self._jobs.known_claims(claim.scope, slots, beside=claim.session.session_id)
            if claim.has_memory
            else KnownClaims()
        )
        return await self._ask_judge(claim.scope, raised, known, ask=not is_away)

    async def _judge(self, order: JobOrder) -> None:
        """Ask what a session left open, because the judge was away or others spoke at the same time."""
        raised = await self._jobs.claims_of_session(order) if self._ask_judge is not None else {}
        if self._ask_judge is None or not can_raise(raised):
            return
        scope = order.scope
        known = await self._jobs.known_claims(scope, {one.slot for one in raised})
        await self._jobs.commit_judging(order, await self._ask_judge(scope, raised, known))

    async def _fail(self, claim: Claim, record: RawRecord, error: JobError) -> Ending:
        if claim.attempt >= self._limits.attempts:
            return await self._bury(claim, record, error)
        return await self._give_back(
            claim, due_in=self._limits.attempt_delay * claim.attempt, error=error, counted=True
        )

    async def _bury(self, claim: Claim, record: RawRecord, error: JobError) -> Ending:
        await self._jobs.bury(claim, record, error=error)
        return Ending.DEAD

    async def _give_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> Ending:
        await self._jobs.put_back(claim, due_in=due_in, error=error, counted=counted)
        return Ending.PUT_BACK


def _is_degraded(answers: Iterable[WindowCandidates]) -> bool:
    return any(answer.degraded for answer in answers)


def _outcome(answers: Sequence[WindowCandidates], dropped: Mapping[str, int], judging: Judging) -> JobOutcome:
    usages = [*(answer.usage for answer in answers), judging.usage]
    return JobOutcome(
        candidates_dropped=dropped,
        windows=len(answers),
        model_calls=sum(usage.model_calls for usage in usages),
        questions_asked=judging.asked,
        judgements=len(judging.judgements),
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
        provider=answers[-1].provider if answers else "rules",
        degraded=_is_degraded(answers),
    )
