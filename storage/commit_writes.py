"""What the fold changed, as rows: collected over the scopes of a commit, then one statement a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Final, LiteralString
from uuid import UUID, uuid5

from pgvector import HalfVector
from psycopg import AsyncConnection

from domain.events import DomainEvent, FactChanged
from domain.memory.assertions import NAMESPACE, Claim, Scope
from domain.memory.facts import FactRow
from domain.memory.projection import Status
from domain.memory.reconcile import Projected
from domain.memory.sentences import claim_sentence
from domain.memory.slots import slot_from_text
from domain.ports import RecallTokenizer
from storage.commit_write_sql import (
    ADD_ASSERTIONS,
    ADD_VECTORS,
    ADD_VERSIONS,
    ADD_WINDOWS,
    DROP_ASSERTIONS,
    DROP_FACTS,
    END_JOBS,
    PUT_CLARIFICATIONS,
    PUT_FACTS,
    PUT_NOTES,
    PUT_PENDING,
    PUT_RECALL,
    PUT_SCOPES,
    SERVE,
)
from storage.fact_rows import fact_row
from storage.json_text import Row, rows_text
from storage.outbox_rows import write_records

_ACTIVE, _PAST, _HIDDEN = 0, 1, 2

# In this order: what goes before what comes, vectors before the recallable rows that take them.
_STATEMENTS: Final[tuple[tuple[LiteralString, str], ...]] = (
    (DROP_FACTS, "facts"),
    (PUT_FACTS, "facts"),
    (ADD_VERSIONS, "versions"),
    (PUT_RECALL, "recall"),
    (PUT_PENDING, "pending"),
    (PUT_CLARIFICATIONS, "clarifications"),
    (PUT_NOTES, "notes"),
    (PUT_SCOPES, "scopes"),
    (SERVE, "sessions"),
    (END_JOBS, "jobs"),
)


@dataclass(slots=True, kw_only=True)
class Writes:
    """Rows on their way into the tables; ``again`` are the sessions whose old assertions go."""

    tokenizer: RecallTokenizer
    again: list[Row] = field(default_factory=list)
    assertions: list[Row] = field(default_factory=list)
    vectors: list[tuple[Scope, UUID, str, bytes]] = field(default_factory=list)
    windows: list[Row] = field(default_factory=list)
    rows: dict[LiteralString, list[Row]] = field(default_factory=lambda: {one: [] for one, _ in _STATEMENTS})
    records: list[Row] = field(default_factory=list)
    model: str | None = None

    def add_vectors(self, scope: Scope, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of sentences, each under the digest of its text."""
        self.model = model
        self.vectors += [(scope, text_id(sentence), model, vector) for sentence, vector in vectors.items()]

    def add_projected(
        self, scope: Scope, projected: Projected, now: datetime, language: str | None
    ) -> list[DomainEvent]:
        """Take in what the fold changed in ``scope``; return the events, with the times that are stored."""
        if projected.is_empty:
            return []
        owner = owner_of(scope)
        facts = [stamped(one, now) for one in projected.facts]
        self.rows[PUT_FACTS] += [fact_row(one) for one in facts]
        self.rows[PUT_RECALL] += [self._recall_row(one, language) for one in facts]
        self.rows[DROP_FACTS] += [{**owner, "fact_id": one} for one in projected.facts_removed]
        self.rows[PUT_SCOPES].append({**owner, "events": projected.event_counter})
        self._add_open_ends(owner, projected)
        events = [
            replace(one, fact=stamped(one.fact, now)) if isinstance(one, FactChanged) else one
            for one in projected.events
        ]
        self._add_versions(owner, projected, events, now)
        return list[DomainEvent](events)

    async def send(self, conn: AsyncConnection) -> None:
        """Send the statements that have rows, into the pipeline of ``conn``."""
        if self.again:
            await conn.execute(DROP_ASSERTIONS, {"scopes": rows_text(self.again)})
        if self.assertions:
            await conn.execute(ADD_ASSERTIONS, {"assertions": rows_text(self.assertions)})
        if self.vectors:
            await conn.execute(ADD_VECTORS, self._vector_params())
        if self.windows:
            await conn.execute(ADD_WINDOWS, {"windows": rows_text(self.windows)})
        for statement, name in _STATEMENTS:
            if rows := self.rows[statement]:
                params = {name: rows_text(rows)}
                await conn.execute(
                    statement, {**params, "model": self.model} if statement is PUT_RECALL else params
                )
        await write_records(conn, self.records)

    def _add_open_ends(self, owner: Row, projected: Projected) -> None:
        self.rows[PUT_PENDING] += [
            *({**owner, "candidate_id": one, "gone": True} for one in projected.pending_removed),
            *(
                {
                    **owner,
                    "candidate_id": one.candidate_id,
                    "slot": one.slot,
                    "mode": one.mode,
                    "value": one.value,
                    "confidence": one.confidence,
                    "sessions": one.sessions,
                    "gone": False,
                }
                for one in projected.pending
            ),
        ]
        self.rows[PUT_CLARIFICATIONS] += [
            *({**owner, "clarification_id": one, "gone": True} for one in projected.clarifications_removed),
            *(
                {
                    **owner,
                    "clarification_id": one.clarification_id,
                    "slot": one.slot,
                    "current_fact": one.current,
                    "other_fact": one.other,
                    "gone": False,
                }
                for one in projected.clarifications
            ),
        ]
        self.rows[PUT_NOTES] += [
            {**owner, "older_fact": one.older, "newer_fact": one.newer, "note": one.note, "gone": is_gone}
            for is_gone, notes in (
                (True, projected.contradictions_removed),
                (False, projected.contradictions),
            )
            for one in notes
        ]

    def _add_versions(
        self, owner: Row, projected: Projected, events: Sequence[DomainEvent], now: datetime
    ) -> None:
        """Append to the history; the number of a version is that of its event."""
        first = projected.event_counter - len(events) + 1
        self.rows[ADD_VERSIONS] += [
            {
                **owner,
                "fact_id": event.fact.fact_id,
                "number": number,
                "revision": event.fact.revision,
                "change": event.change,
                "reason": event.reason,
                "session_id": event.session_id,
                "job_id": event.job_id,
                "fact": fact_row(event.fact),
                "at": now,
            }
            for number, event in enumerate(events, first)
            if isinstance(event, FactChanged)
        ]

    def _recall_row(self, fact: FactRow, language: str | None) -> Row:
        words = self.tokenizer(" ".join((fact.content, fact.fact_key, *fact.aliases)), language)
        slot = slot_from_text(fact.slot)
        return {
            "user_id": fact.user_id,
            "tenant_id": fact.tenant_id,
            "avatar_id": fact.avatar_id,
            "id": fact.fact_id,
            "status": _recall_status(fact),
            "category": fact.category,
            "fact_key": fact.fact_key,
            "content": fact.content,
            "tokens": words.tokens,
            "dl": words.length,
            "text_id": text_id(claim_sentence(Claim(slot, fact.norm, fact.mode))),
            "importance": fact.importance,
            "confidence": fact.confidence,
            "reinforced": fact.reinforced,
            "valid_from": fact.valid_from,
            "expires_at": fact.expires_at,
            "topics": fact.topics,
        }

    def _vector_params(self) -> dict[str, object]:
        return {
            "user_ids": [UUID(scope.user) for scope, *_ in self.vectors],
            "tenant_ids": [scope.tenant for scope, *_ in self.vectors],
            "avatar_ids": [UUID(scope.avatar) for scope, *_ in self.vectors],
            "text_ids": [one for _, one, _, _ in self.vectors],
            "models": [model for _, _, model, _ in self.vectors],
            "embeddings": [half_vector(vector) for *_, vector in self.vectors],
        }


def owner_of(scope: Scope) -> Row:
    """Return the columns that every row of a scope has."""
    return {"tenant_id": scope.tenant, "user_id": scope.user, "avatar_id": scope.avatar}


def lock_key(scope: Scope) -> int:
    """Number the lock of a user's memory; all avatars share it, so that their events keep one order."""
    digest = blake2b(f"{scope.tenant}\x1f{scope.user}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def text_id(sentence: str) -> UUID:
    """Name a text that is embedded."""
    return uuid5(NAMESPACE, sentence)


def stamped(fact: FactRow, now: datetime) -> FactRow:
    """Return ``fact`` with the times of a row that is written at ``now``."""
    deleted_at = (fact.deleted_at or now) if fact.status is Status.DELETED else None
    return replace(fact, created_at=fact.created_at or now, updated_at=now, deleted_at=deleted_at)


def half_vector(vector: bytes) -> HalfVector:
    """Return little-endian float16 as the database takes it, without reading a number."""
    swapped = bytearray(len(vector))
    swapped[0::2], swapped[1::2] = vector[1::2], vector[0::2]
    return HalfVector.from_binary((len(vector) // 2).to_bytes(2, "big") + b"\0\0" + bytes(swapped))


def _recall_status(fact: FactRow) -> int:
    if fact.status is Status.DELETED:
        return _HIDDEN
    return _ACTIVE if fact.status is Status.ACTIVE and fact.merged_into is None else _PAST
