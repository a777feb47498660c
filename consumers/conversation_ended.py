"""Take in conversations that ended."""

from collections.abc import Callable
from typing import Protocol

from consumers.decoding import decode
from consumers.translation import Repairs, Translator
from domain.arrivals import Acceptance, EndedConversation, Verdict
from domain.outbox import RawRecord
from schemas import conversation as wire


class Accept(Protocol):
    """The use case that stores a conversation, once."""

    async def __call__(self, conversation: EndedConversation) -> Acceptance:
        """Store ``conversation`` and say what its arrival did."""
        ...


class ConversationEndedHandler:
    """Decodes a record of the ended topic and hands it to intake; returns when it is stored."""

    def __init__(
        self,
        accept: Accept,
        *,
        on_repairs: Callable[[Repairs], None],
        on_verdict: Callable[[Verdict], None] = lambda _verdict: None,
    ) -> None:
        self._accept = accept
        self._on_repairs = on_repairs
        self._on_verdict = on_verdict

    async def __call__(self, record: RawRecord) -> None:
        """Store the conversation of ``record``.

        Raises:
            InvalidInputError: the record is no such message.
            InfrastructureError: the database is away; nothing was stored.
        """
        translator = Translator()
        conversation = translator.ended(decode(wire.ConversationEnded, record.value), record)
        acceptance = await self._accept(conversation)
        self._on_repairs(translator.repairs)
        self._on_verdict(acceptance.verdict)
