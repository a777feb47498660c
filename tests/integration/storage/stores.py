"""The repositories with everything they need, and conversations to feed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import orjson
from psycopg.rows import dict_row

from domain.arrivals import Acceptance, EndedConversation, Origin
from domain.candidates import Candidate, Method
from domain.conversation import NIL_AVATAR, Message, UserRef
from domain.jobs import Claim, Job, JobKind, JobOrder, JobOutcome
from domain.memory.evidence import assertions_of
from domain.memory.sentences import claim_sentence
from domain.ports import RecallText, RecallTokenizer, WindowCandidates
from domain.stores import Extracted
from producers.dead_letters import DeadLetterEncoder
from producers.encoding import Encoder
from schemas.topics import Topics
from storage.dead_letters import PostgresDeadLetters
from storage.intake import PostgresIntake
from storage.jobs import PostgresJobs
from storage.last_seen import PostgresLastSeen
from storage.outgoing import Outgoing
from storage.pool import Database
from storage.reads import PostgresReads

TENANT = "acme"
ANA = UserRef(user_id=uuid5(NAMESPACE_URL, "ana"))
GRACE = timedelta(seconds=30)
DEADLINE = timedelta(seconds=60)
MARCH = datetime(2024, 3, 1, 10, tzinfo=UTC)


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def words_of(text: str, language: str | None) -> RecallText:
    tokens = tuple(dict.fromkeys(text.casefold().split()))
    return RecallText(tokens=tokens, length=len(tokens))


def session_id(name: str) -> UUID:
    return uuid5(NAMESPACE_URL, name)


def message(position: int, content: str, *, at: datetime = MARCH) -> Message:
    return Message(
        message_id=f"m{position}",
        position=position,
        role="user",
        content=content,
        sent_at=at + timedelta(minutes=position),
    )


def ended(
    name: str,
    *texts: str,
    user: UserRef = ANA,
    at: datetime = MARCH,
    tenant: str = TENANT,
    **more: Any,
) -> EndedConversation:
    messages = tuple(message(place, text, at=at) for place, text in enumerate(texts))
    fields = {"messages": messages, "origin": Origin.LIVE, **more}
    return EndedConversation(
        tenant_id=tenant,
        user=user,
        session_id=session_id(name),
        ended_at=at + timedelta(hours=1),
        **fields,
    )


def candidate(key: str, value: str, *, at: datetime = MARCH, **more: Any) -> Candidate:
    fields = {"confidence": 0.9, "importance": 5.0, "method": Method.RULES, "message_ids": ("m0",), **more}
    return Candidate(category="fact", key=key, value=value, said_at=at, **fields)


def vector_of(text: str) -> bytes:
    return bytes([len(text) % 100, 0x3C]) * 8


@dataclass(slots=True, kw_only=True)
class Stores:
    database: Database
    wakes: list[int] = field(default_factory=list)

    @property
    def outgoing(self) -> Outgoing:
        topics = Topics()
        return Outgoing(
            encode=Encoder(topics, "test"),
            encode_dead_letter=DeadLetterEncoder(topics),
            wake=lambda: self.wakes.append(1),
        )

    def intake(self) -> PostgresIntake:
        return PostgresIntake(self.database, outgoing=self.outgoing, clock=MachineClock())

    def jobs(
        self, worker: str = "w1", *, tokenizer: RecallTokenizer | None = None, slots: int = 48
    ) -> PostgresJobs:
        return PostgresJobs(
            self.database,
            outgoing=self.outgoing,
            tokenizer=tokenizer or words_of,
            clock=MachineClock(),
            worker=worker,
            slots=slots,
        )

    def reads(self) -> PostgresReads:
        return PostgresReads(self.database)

    def dead_letters(self) -> PostgresDeadLetters:
        return PostgresDeadLetters(self.database, outgoing=self.outgoing, clock=MachineClock())

    def last_seen(self) -> PostgresLastSeen:
        return PostgresLastSeen(self.database)

    async def accept(self, conversation: EndedConversation) -> Acceptance:
        recall = {m.message_id: words_of(m.content, None) for m in conversation.messages or ()}
        return await self.intake().accept(conversation, recall, grace=GRACE)

    async def claimed(self, conversation: EndedConversation) -> Claim:
        accepted = await self.accept(conversation)
        claim = await self.jobs().claim(order_of(conversation, accepted), deadline=DEADLINE)
        assert claim is not None
        return claim

    async def remember(self, conversation: EndedConversation, *candidates: Candidate) -> Job:
        claim = await self.claimed(conversation)
        return await self.jobs().commit(claim, extracted(claim, *candidates), JobOutcome())

    async def rows(self, query: LiteralString, *params: object) -> Sequence[Mapping[str, Any]]:
        async with self.database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, params or None)
            return await cursor.fetchall()

    async def run(self, query: LiteralString, *params: object) -> int:
        async with self.database.connection() as conn:
            return (await conn.execute(query, params or None)).rowcount

    async def events(self) -> Sequence[str]:
        """The kinds of the events in the outbox, in their order; they stay there."""
        found = await self.rows(
            "SELECT header_names, header_values FROM lis.outbox WHERE topic = 'memory.events.v1' ORDER BY id"
        )
        headers = [dict(zip(one["header_names"], one["header_values"], strict=True)) for one in found]
        return [one["ce_type"].decode() for one in headers]

    async def values(self) -> Mapping[str, str]:
        """Value → status of all facts."""
        found = await self.rows("SELECT fact_value, status FROM lis.memory_facts")
        return {one["fact_value"]: one["status"] for one in found}

    async def orders(self) -> Sequence[Mapping[str, Any]]:
        """The orders in the outbox, with the time at which they are due."""
        found = await self.rows(
            "SELECT topic, value, available_at > now() AS is_later FROM lis.outbox "
            "WHERE topic LIKE 'extraction.jobs.%%' ORDER BY id"
        )
        return [{**orjson.loads(one["value"]), **one} for one in found]


def order_of(conversation: EndedConversation, accepted: Acceptance) -> JobOrder:
    return JobOrder(
        kind=JobKind.EXTRACT,
        tenant_id=conversation.tenant_id,
        user_id=accepted.user_id,
        avatar_id=NIL_AVATAR,
        job_id=accepted.job_id,
        session_id=conversation.session_id,
        generation=conversation.generation,
    )


def fold_order() -> JobOrder:
    assert ANA.user_id is not None
    return JobOrder(
        kind=JobKind.FOLD,
        tenant_id=TENANT,
        user_id=ANA.user_id,
        avatar_id=NIL_AVATAR,
        job_id=ANA.user_id,
    )


def extracted(claim: Claim, *candidates: Candidate) -> Extracted:
    assertions = assertions_of(claim.scope, claim.session.session_id, claim.order.generation, candidates)
    return Extracted(
        assertions=tuple(assertions),
        windows={"w": WindowCandidates(candidates=tuple(candidates))},
        vectors={claim_sentence(one.claim): vector_of(claim_sentence(one.claim)) for one in assertions},
        model="test",
        dropped={},
    )


def somebody() -> UserRef:
    return UserRef(user_id=uuid4())
