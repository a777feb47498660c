"""Apply commands to the memory, and answer those who wait for it (docs/architecture/commands.md)."""

import logging
from datetime import datetime
from typing import Final, Literal, Protocol, assert_never
from uuid import UUID

from consumers.decoding import decode
from consumers.requests import error_reply
from consumers.translation import avatar_of, moment_of, user_of
from domain.command_facts import Applied, CommandRef, FactGiven
from domain.errors import (
    BrokerUnavailableError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PermanentError,
)
from domain.memory.assertions import RetractionKind
from domain.outbox import RawRecord
from domain.ports import Clock
from producers.replies import Replies
from producers.wire_json import fact_body, to_json
from schemas import commands as wire
from schemas import headers

logger = logging.getLogger(__name__)

_KINDS: Final = {"forget": RetractionKind.FORGET, "disown": RetractionKind.DISOWN}


class Commands(Protocol):
    """The use case of commands about facts."""

    async def store(self, ref: CommandRef, given: FactGiven) -> Applied:
        """Remember a fact."""
        ...

    async def update(
        self, ref: CommandRef, fact_id: UUID, value: str, *, how: Literal["change", "correction"]
    ) -> Applied:
        """Give a fact another value."""
        ...

    async def delete(self, ref: CommandRef, fact_id: UUID, *, kind: RetractionKind) -> Applied:
        """Forget or disown a fact."""
        ...

    async def restore(self, ref: CommandRef, fact_id: UUID) -> Applied:
        """Lift earlier deletes of a fact."""
        ...


class MemoryCommandHandler:
    """Handles one record of the commands' topic.

    What a command says wrong is answered where an answer is wanted. What cannot be a command at all becomes a
    dead letter, and so does one that nobody waits for.
    """

    def __init__(self, commands: Commands, replies: Replies, clock: Clock) -> None:
        self._commands = commands
        self._replies = replies
        self._clock = clock

    async def __call__(self, record: RawRecord) -> None:
        """Apply the command in ``record`` once, and answer it.

        Raises:
            InvalidInputError: it is no command.
            PermanentError: it cannot be applied, and nobody waits to hear so.
            InfrastructureError: the database did not answer.
        """
        try:
            result = await self._applied(record)
        except (NotFoundError, ConflictError, InvalidInputError) as error:
            is_told = await self._answer(record, error_reply(error))
            if isinstance(error, InvalidInputError) or not is_told:
                raise
        else:
            await self._answer(record, to_json({"ok": True, "result": result}))

    async def _applied(self, record: RawRecord) -> object:
        kind = wire.COMMANDS.get(decode(wire.CommandType, record.value).type)
        if kind is None:
            raise InvalidInputError(f"type: expected one of {', '.join(wire.COMMANDS)}", field="type")
        command = decode(kind, record.value)
        ref = self._ref(command, record)
        match command:
            case wire.FactStore():
                return _fact(await self._commands.store(ref, _given(command, ref.at)))
            case wire.FactUpdate():
                return _fact(
                    await self._commands.update(ref, command.fact_id, command.fact_value, how=command.how)
                )
            case wire.FactDelete():
                applied = await self._commands.delete(ref, command.fact_id, kind=_KINDS[command.mode])
                return {"removed": applied.removed}
            case wire.FactRestore():
                return _fact(await self._commands.restore(ref, command.fact_id))
            case unreachable:
                assert_never(unreachable)

    def _ref(self, command: wire.AnyCommand, record: RawRecord) -> CommandRef:
        return CommandRef(
            command_id=command.command_id,
            kind=command.type,
            tenant_id=command.tenant_id,
            user=user_of(command),
            avatar_id=avatar_of(command),
            at=record.timestamp or self._clock.now(),
        )

    async def _answer(self, record: RawRecord, body: bytes) -> bool:
        """Send ``body`` where the sender reads; say whether it was asked for and went."""
        reply_to = headers.text(record.headers, headers.REPLY_TO)
        correlation_id = headers.correlation_id(record.headers)
        if reply_to is None or correlation_id is None or not self._replies.allows(reply_to):
            return False
        partition = headers.number(record.headers, headers.REPLY_PARTITION)
        try:
            await self._replies.send(reply_to, body, partition=partition, correlation_id=correlation_id)
        except (BrokerUnavailableError, PermanentError) as error:
            # It is applied; whoever waited asks again under the same id.
            logger.warning("the answer to a command was not sent: %s", type(error).__name__)
            return False
        return True


def _given(command: wire.FactStore, at: datetime) -> FactGiven:
    if command.shared:
        raise InvalidInputError(
            "shared: facts of a whole tenant are not kept in this version", field="shared"
        )
    return FactGiven(
        category=command.category,
        fact_key=command.fact_key,
        fact_value=command.fact_value,
        content=command.content or "",
        aliases=command.aliases,
        topics=command.topics,
        confidence=command.confidence,
        importance=command.importance,
        expires_at=moment_of(command.expires_at),
        said_at=moment_of(command.said_at) or at,
    )


def _fact(applied: Applied) -> object:
    return {"fact": fact_body(applied.fact) if applied.fact is not None else None}
