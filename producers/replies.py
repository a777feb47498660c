"""Send replies to where the callers read them."""

import asyncio
from fnmatch import fnmatchcase
from typing import Final

from domain.errors import BrokerUnavailableError
from producers.connection import Producer
from schemas import headers

DEFAULT_PATTERNS: Final = ("*.replies", "*.replies.*")
_MOST_SECONDS: Final = 5.0


class Replies:
    """Sends to topics that match a pattern and to no other: a request must not write wherever it likes."""

    def __init__(self, producer: Producer, *, patterns: tuple[str, ...] = DEFAULT_PATTERNS) -> None:
        self._producer = producer
        self._patterns = patterns

    def allows(self, topic: str) -> bool:
        """Say whether ``topic`` is one that replies may go to."""
        return any(fnmatchcase(topic, pattern) for pattern in self._patterns)

    async def send(self, topic: str, body: bytes, *, partition: int | None, correlation_id: str) -> None:
        """Send ``body``, with the correlation id and the content type as its only headers.

        Raises:
            BrokerUnavailableError: it was not taken in time, or there is no such topic or partition.
        """
        about = ((headers.CORRELATION_ID, correlation_id.encode()), (headers.CONTENT_TYPE, headers.JSON))
        try:
            # A topic that is not there would be waited for.
            async with asyncio.timeout(_MOST_SECONDS):
                await self._producer.send(topic, body, headers=about, partition=partition)
        except TimeoutError as error:
            raise BrokerUnavailableError("a reply was not taken in time") from error
        except AssertionError as error:
            # This is how aiokafka says that there is no such partition.
            raise BrokerUnavailableError("a reply names a partition that is not there") from error
