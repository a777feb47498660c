"""Take in conversations that come again, or come from files, in a lane of their own."""

from collections.abc import Callable
from typing import Final

from consumers.conversation_ended import Accept
from consumers.decoding import decode
from consumers.translation import Repairs, Translator
from domain.arrivals import Origin, Verdict
from domain.errors import InvalidInputError
from domain.outbox import RawRecord
from schemas import conversation as wire
from schemas import headers

FILL: Final = "fill"


class ConversationReplayHandler:
    """Fills in what is missing in the live memory; a conversation that is there already changes nothing."""

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
        """Store the conversation of ``record``, in mode ``fill``, which is also meant without the header.

        Raises:
            InvalidInputError: the record is no such message, or asks for a mode that this version has not.
            InfrastructureError: the database is away; nothing was stored.
        """
        mode = headers.text(record.headers, headers.REPLAY_MODE)
        if mode not in (None, FILL):
            raise InvalidInputError(f"{headers.REPLAY_MODE}: expected {FILL}", field=headers.REPLAY_MODE)
        translator = Translator()
        message = decode(wire.ConversationEnded, record.value)
        acceptance = await self._accept(translator.ended(message, record, origin=Origin.REPLAY))
        self._on_repairs(translator.repairs)
        self._on_verdict(acceptance.verdict)
