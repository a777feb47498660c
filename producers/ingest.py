"""Publish conversations from files to the replay topic, where they pass by live traffic."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from domain.errors import BrokerUnavailableError, InvalidInputError
from producers.client_messages import scope_key
from producers.connection import Producer
from schemas import headers
from schemas.conversation import ConversationEnded
from schemas.topics import Topics
from schemas.wire import WireError, decode

_AT_ONCE: Final = 200
_FILL: Final = b"fill"


@dataclass(slots=True, kw_only=True)
class Ingested:
    """How many conversations were published, and which lines were not, and why."""

    published: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)


class Ingest:
    """Publishes JSON lines of ``ConversationEnded``, in order per user."""

    def __init__(
        self,
        producer: Producer,
        topics: Topics,
        *,
        replay_id: str,
        on_published: Callable[[int], None] = lambda _count: None,
    ) -> None:
        self._producer = producer
        self._topic = topics.replay
        self._on_published = on_published
        self._headers = (
            (headers.REPLAY_ID, replay_id.encode()),
            (headers.REPLAY_MODE, _FILL),
            (headers.CONTENT_TYPE, headers.JSON),
        )

    async def __call__(self, lines: Iterable[bytes]) -> Ingested:
        """Publish every line that can be read; say which could not.

        Raises:
            BrokerUnavailableError: not all lines were taken; publishing all of them again changes nothing.
        """
        ingested = Ingested()
        waiting: list[Awaitable[Any]] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                key = key_of(line)
            except InvalidInputError as error:
                ingested.refused.append((number, str(error)))
                continue
            body = line.strip()
            waiting.append(await self._producer.enqueue(self._topic, body, key=key, headers=self._headers))
            if len(waiting) >= _AT_ONCE:
                ingested.published += await self._settled(waiting)
                waiting = []
        ingested.published += await self._settled(waiting)
        return ingested

    async def _settled(self, waiting: Sequence[Awaitable[Any]]) -> int:
        acknowledged = await self._producer.settle(waiting)
        if not all(acknowledged):
            raise BrokerUnavailableError("the broker did not acknowledge every line")
        self._on_published(len(acknowledged))
        return len(acknowledged)


def key_of(line: bytes) -> bytes:
    """Return the scope key of a conversation.

    Raises:
        InvalidInputError: ``line`` is no ``ConversationEnded``.
    """
    try:
        message = decode(ConversationEnded, line)
    except WireError as error:
        raise InvalidInputError(str(error), field=error.field) from None
    return scope_key(message.tenant_id, message.user_id or str(message.external_user_id))
