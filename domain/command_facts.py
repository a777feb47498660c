"""Change facts by command: store, update, delete, restore (docs/architecture/commands.md).

A manual store or update is a statement like any other, with the command's id in the place of a session's; a
delete or a restore is a retraction. The fold makes of them what it makes of everything that was said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, Protocol
from uuid import UUID

from domain.candidates import Candidate, Method
from domain.conversation import LIVE, UserRef
from domain.errors import EmbedderUnavailableError, InvalidInputError, NotFoundError
from domain.instructions import is_instruction
from domain.memory.assertions import Assertion, Corrects, InsteadOf, RetractionKind, Scope
from domain.memory.evidence import assertions_of
from domain.memory.facts import FactRow
from domain.memory.keys import canonical_key
from domain.memory.sentences import claim_sentence
from domain.memory.slots import slot_from_text
from domain.memory.vocabulary import builtin_vocabulary
from domain.ports import Embedder
from domain.secrets import holds_secret

_NO_FACT: Final = "no such fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRef:
    """Which command it is, and whose memory it changes; ``at`` is when it was given."""

    command_id: UUID
    kind: str
    tenant_id: str
    user: UserRef
    avatar_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FactGiven:
    """A fact as somebody stores it."""

    category: str
    fact_key: str
    fact_value: str
    content: str = ""
    aliases: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    confidence: float
    importance: float
    expires_at: datetime | None = None
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a command did: the fact as it is now, and how many facts ceased to be active."""

    fact: FactRow | None
    removed: int = 0


class FactCommands(Protocol):
    """Applies commands, each once, in one transaction with the fold of what they touch."""

    async def user_of(self, tenant_id: str, user: UserRef) -> UUID:
        """Return the user, made known where the id is the tenant's own and new."""
        ...

    async def known_user_of(self, tenant_id: str, user: UserRef) -> UUID | None:
        """Return the user, or None for an id of the tenant's own that was never seen."""
        ...

    async def find(self, scope: Scope, fact_id: UUID) -> FactRow | None:
        """Return the fact that has, or once had, ``fact_id``."""
        ...

    async def add(
        self, scope: Scope, ref: CommandRef, assertion: Assertion, vectors: Mapping[str, bytes], model: str
    ) -> Applied:
        """Add a statement and fold its slot; a command that was applied before changes nothing."""
        ...

    async def retract(self, scope: Scope, ref: CommandRef, fact: FactRow, kind: RetractionKind) -> Applied:
        """Add one retraction for each name of ``fact`` and fold its slot."""
        ...


class CommandFacts:
    """The use case of all commands about one fact."""

    def __init__(self, *, commands: FactCommands, embedder: Embedder) -> None:
        self._commands = commands
        self._embedder = embedder

    async def store(self, ref: CommandRef, given: FactGiven) -> Applied:
        """Remember ``given``.

        Raises:
            InvalidInputError: a field breaks the rules of a fact; the message names it.
        """
        candidate = _candidate(given)
        user_id = await self._commands.user_of(ref.tenant_id, ref.user)
        scope = _scope(ref, user_id)
        assertion = _only(assertions_of(scope, ref.command_id, LIVE, [candidate]))
        assertion = replace(assertion, aliases=given.aliases, topics=given.topics)
        return await self._add(scope, ref, assertion)

    async def update(
        self, ref: CommandRef, fact_id: UUID, value: str, *, how: Literal["change", "correction"]
    ) -> Applied:
        """Give the fact another value, as a change or because the old one was wrong.

        Raises:
            NotFoundError: the scope has no such fact.
            InvalidInputError: the value breaks the rules of a fact.
        """
        scope, fact = await self._found(ref, fact_id)
        slot = slot_from_text(fact.slot)
        _check_value(slot.key, value)
        old = fact.fact_value
        assertion = Assertion(
            scope=scope,
            session_id=str(ref.command_id),
            generation=LIVE,
            position=0,
            said_at=max(ref.at, fact.last_said_at),
            slot=slot,
            value=value,
            amends=InsteadOf(old) if how == "change" else Corrects(old, everywhere=True),
            confidence=max(fact.confidence, 0.95),
            importance=fact.importance,
            category=fact.category,
            method=Method.MANUAL,
            aliases=fact.aliases,
            topics=fact.topics,
        )
        return await self._add(scope, ref, assertion)

    async def delete(self, ref: CommandRef, fact_id: UUID, *, kind: RetractionKind) -> Applied:
        """Forget or disown the fact.

        Raises:
            NotFoundError: the scope has no such fact.
        """
        scope, fact = await self._found(ref, fact_id)
        return await self._commands.retract(scope, ref, fact, kind)

    async def restore(self, ref: CommandRef, fact_id: UUID) -> Applied:
        """Lift earlier deletes of the fact.

        Raises:
            NotFoundError: the scope has no such fact.
        """
        scope, fact = await self._found(ref, fact_id)
        return await self._commands.retract(scope, ref, fact, RetractionKind.RESTORE)

    async def _found(self, ref: CommandRef, fact_id: UUID) -> tuple[Scope, FactRow]:
        user_id = await self._commands.known_user_of(ref.tenant_id, ref.user)
        if user_id is None:
            raise NotFoundError(_NO_FACT)
        scope = _scope(ref, user_id)
        fact = await self._commands.find(scope, fact_id)
        if fact is None:
            raise NotFoundError(_NO_FACT)
        return scope, fact

    async def _add(self, scope: Scope, ref: CommandRef, assertion: Assertion) -> Applied:
        sentence = claim_sentence(assertion.claim)
        try:
            vectors = dict(zip([sentence], await self._embedder.embed([sentence]), strict=True))
        except EmbedderUnavailableError:
            # Found by its words until a later statement brings the vector: a command is not lost over it.
            vectors = {}
        return await self._commands.add(scope, ref, assertion, vectors, self._embedder.info.model)


def _scope(ref: CommandRef, user_id: UUID) -> Scope:
    return Scope(tenant=ref.tenant_id, user=str(user_id), avatar=str(ref.avatar_id))


def _candidate(given: FactGiven) -> Candidate:
    known = builtin_vocabulary().types
    if given.category not in known:
        raise InvalidInputError(f"category: expected one of {', '.join(sorted(known))}", field="category")
    if not any(letter.isalpha() for letter in given.fact_key):
        raise InvalidInputError("fact_key: expected a name with letters", field="fact_key")
    key = canonical_key(given.fact_key)
    _check_value(key, given.fact_value)
    _check_words(key, given)
    return Candidate(
        category=given.category,
        key=key,
        value=given.fact_value.strip(),
        content=" ".join(given.content.split()),
        confidence=given.confidence,
        importance=given.importance,
        expires_at=given.expires_at,
        said_at=given.said_at,
        message_ids=(),
        method=Method.MANUAL,
    )


def _check_value(key: str, value: str) -> None:
    if not any(letter.isalnum() for letter in value):
        raise InvalidInputError("fact_value: expected a value with letters or digits", field="fact_value")
    _check_text("fact_value", key, value)
    # A password is known by its key alone: "wifi_password" and "tulip99" are harmless each for itself.
    if holds_secret(f"{key.replace('_', ' ')}: {value}"):
        raise InvalidInputError(
            "fact_value: its key says it is a secret, which is not kept", field="fact_value"
        )


def _check_words(key: str, given: FactGiven) -> None:
    """Hold every other text of a fact to the rules of its value: all are kept, found and sent in events."""
    _check_text("fact_key", key, given.fact_key)
    _check_text("content", key, given.content)
    for alias in given.aliases:
        _check_text("aliases", key, alias)
    for topic in given.topics:
        _check_text("topics", key, topic)


def _check_text(field: str, key: str, text: str) -> None:
    if holds_secret(text):
        raise InvalidInputError(f"{field}: it looks like a secret, which is not kept", field=field)
    if is_instruction(key, text):
        raise InvalidInputError(f"{field}: it is an instruction, not a fact", field=field)


def _only(found: Sequence[Assertion]) -> Assertion:
    if not found:
        raise InvalidInputError("fact_value: expected a value that says something", field="fact_value")
    return found[0]
