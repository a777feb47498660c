"""Take in single messages of conversations that may go on."""

from collections.abc import Callable
from typing import Protocol

from consumers.decoding import decode
from consumers.translation import Repairs, Translator
from domain.arrivals import PostedMessage
from domain.outbox import RawRecord
from schemas import conversation as wire


class Post(Protocol):
    """The use case that stores one message, once."""

    async def __call__(self, posted: PostedMessage) -> None:
        """Store ``posted``."""
        ...


class MessagePostedHandler:
    """Decodes a record of the messages topic and hands it to intake; one without a text is only counted."""

    def __init__(self, post: Post, *, on_repairs: Callable[[Repairs], None]) -> None:
        self._post = post
        self._on_repairs = on_repairs

    async def __call__(self, record: RawRecord) -> None:
        """Store the message of ``record``.

        Raises:
            InvalidInputError: the record is no such message.
            InfrastructureError: the database is away; nothing was stored.
        """
        translator = Translator()
        posted = translator.posted(decode(wire.MessagePosted, record.value), record)
        if posted is not None:
            await self._post(posted)
        self._on_repairs(translator.repairs)
