"""What the use cases need from the database, as protocols. The adapters are in ``storage/``.

Every method is one unit of work: it commits or leaves nothing. Errors of the database are raised as
``StorageUnavailableError``; none of these methods is ever called while a model is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from domain.arrivals import Acceptance, EndedConversation, PostedMessage
from domain.conversation import NIL_AVATAR, UserRef
from domain.injection import RankedRead
from domain.jobs import Claim, Job, JobError, JobOrder, JobOutcome
from domain.judging import Judging, KnownClaims, Vectors
from domain.memory.assertions import Assertion, Scope
from domain.memory.facts import FactRow
from domain.memory.slots import Slot
from domain.outbox import RawRecord
from domain.ports import RecallText, WindowCandidates


class Intake(Protocol):
    """Takes in conversations, once each."""

    async def accept(
        self, conversation: EndedConversation, recall: Mapping[str, RecallText], *, grace: timedelta
    ) -> Acceptance:
        """Store session, messages, job and outbox rows in one transaction; say what the arrival did.

        ``recall`` has the words of each message by its id. The ``INSERT … ON CONFLICT`` on (tenant, session,
        generation) is what makes a repeat harmless; ``domain.arrivals.decide`` says what a repeat does.
        A session that waits for its messages gets a job that is due after ``grace``.
        """
        ...

    async def post(self, message: PostedMessage, recall: RecallText, *, grace: timedelta) -> None:
        """Store one message; one after the session's end makes a new revision, due after ``grace``."""
        ...


class DeadLetterStore(Protocol):
    """Keeps what cannot be processed."""

    async def bury(self, record: RawRecord, *, error_class: str, reason: str, attempts: int) -> bool:
        """Write one row and one dead letter, once for each place in a topic; say whether it was new."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What a session said, ready to be committed."""

    assertions: tuple[Assertion, ...]
    windows: Mapping[str, WindowCandidates]
    vectors: Mapping[str, bytes]
    model: str
    dropped: Mapping[str, int]
    judging: Judging = field(default_factory=Judging)
    is_followed_up: bool = False


class JobStore(Protocol):
    """Jobs and what they write."""

    async def claim(self, order: JobOrder, *, deadline: timedelta) -> Claim | None:
        """Take the job with the next fencing number, with its session; None when there is nothing to do.

        A job that another worker holds is taken over: its record came to us, so the other one lost it.

        Raises:
            SlotsTakenError: the tenant has as many jobs running as it may; the job is as it was.
        """
        ...

    async def keep_windows(self, claim: Claim, windows: Mapping[str, WindowCandidates]) -> None:
        """Keep candidates by the digest of their window, so that a retry does not pay the model again.

        Raises:
            ClaimLostError: another worker holds the job.
        """
        ...

    async def commit(self, claim: Claim, extracted: Extracted, outcome: JobOutcome) -> Job:
        """Replace the session's assertions, fold the touched slots, write the difference and end the job.

        Raises:
            ClaimLostError: another worker holds the job; nothing was written.
        """
        ...

    async def known_claims(
        self, scope: Scope, slots: Collection[Slot], *, beside: UUID | None = None
    ) -> KnownClaims:
        """Return what served sessions say in ``slots``, without that of ``beside``; nothing is locked."""
        ...

    async def claims_of_session(self, order: JobOrder) -> Vectors:
        """Return the claims of the session of ``order``, as it is served, with their vectors."""
        ...

    async def commit_judging(self, order: JobOrder, judging: Judging) -> None:
        """Keep the judgements, fold what they touch, count them with the job; order again what is owed."""
        ...

    async def refold(self, order: JobOrder) -> None:
        """Fold the slots of a scope that commands touched since (the gateway's soft delete)."""
        ...

    async def put_back(
        self, claim: Claim, *, due_in: timedelta, error: JobError | None, counted: bool
    ) -> None:
        """Give the job back for a later attempt, ``counted`` as one or not."""
        ...

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order a job that found no slot again, for when one is expected; it costs no attempt.

        ``job_seconds`` is how long a job takes at the moment. A job that somebody runs stays with them, and
        is looked at again.
        """
        ...

    async def gate(self, claim: Claim, reason: str) -> None:
        """End the job without an extraction; the session stays."""
        ...

    async def bury(self, claim: Claim, record: RawRecord, *, error: JobError) -> None:
        """End the job as dead, with its dead letter."""
        ...

    async def requeue_stranded(self, *, older_than: timedelta) -> int:
        """Order again the jobs whose record was lost with a broker; say how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsQuery:
    """Which facts of a scope to list; empty ``statuses`` or ``categories`` leave nothing out."""

    tenant_id: str
    user: UserRef
    avatar_id: UUID = NIL_AVATAR
    statuses: frozenset[str] = frozenset({"active"})
    categories: frozenset[str] = frozenset()
    cursor: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPage:
    """One page of facts, and where the next one starts."""

    items: tuple[FactRow, ...]
    next_cursor: str | None


class Reads(Protocol):
    """Reads for the responder; one round trip each, on a pool of their own."""

    async def ranked(
        self, tenant_id: str, user: UserRef, avatar_id: UUID, *, limit: int, as_of: datetime | None
    ) -> RankedRead:
        """Return the facts of a scope by (confidence, last said), best first, and its pending sessions."""
        ...

    async def facts(self, query: FactsQuery) -> FactPage:
        """Return facts of a scope in a stable order, newest first said last."""
        ...

    async def job(self, tenant_id: str, *, job_id: UUID | None, session_id: UUID | None) -> Job | None:
        """Return a job by its id, or the newest of a session."""
        ...

    async def session_facts(self, tenant_id: str, user_id: UUID, session_id: UUID) -> Sequence[FactRow]:
        """Return the facts that a session is evidence of."""
        ...


class LastSeen(Protocol):
    """Stamps facts that were put into a prompt, in batches, off the path of a reply."""

    async def stamp(self, seen: Mapping[UUID, Collection[UUID]], *, at: datetime) -> None:
        """Set ``last_seen_at`` of the facts of each user."""
        ...
