"""Send replies to where the callers read them."""

import asyncio
import re
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final, Protocol

from domain.errors import BrokerUnavailableError
from schemas import headers

DEFAULT_PATTERNS: Final = ("*.replies", "*.replies.*")
_MOST_SECONDS: Final = 5.0
_MISSING_SECONDS: Final = 10.0
_MOST_MISSING: Final = 1_000
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class ReplyProducer(Protocol):
    """What sends a record, and knows which topics there are."""

    async def send(
        self, topic: str, value: bytes | None, *, headers: headers.Headers, partition: int | None
    ) -> None:
        """Send one record and wait until it is safe."""
        ...

    def lacks(self, topic: str) -> bool:
        """Say whether the broker has no such topic."""
        ...


class Replies:
    """Sends to topics that match a pattern and to no other: a request must not write wherever it likes.

    A topic that was not there is not waited for again until a while has passed, and then by one reply alone:
    a caller without a topic must not hold up the answers of all others.
    """

    def __init__(
        self,
        producer: ReplyProducer,
        *,
        patterns: tuple[str, ...] = DEFAULT_PATTERNS,
        most_seconds: float = _MOST_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._patterns = patterns
        self._most_seconds = most_seconds
        self._now = now
        self._missing_until: dict[str, float] = {}

    def allows(self, topic: str) -> bool:
        """Say whether ``topic`` is one that replies may go to."""
        # A name that no topic can have would be asked for again with every look at the cluster.
        if not _TOPIC.fullmatch(topic):
            return False
        return any(fnmatchcase(topic, pattern) for pattern in self._patterns)

    async def send(self, topic: str, body: bytes, *, partition: int | None, correlation_id: str) -> None:
        """Send ``body``, with the correlation id and the content type as its only headers.

        Raises:
            BrokerUnavailableError: it was not taken in time, or there is no such topic or partition.
        """
        if self._is_missing(topic):
            raise BrokerUnavailableError("there is no such reply topic")
        about = ((headers.CORRELATION_ID, correlation_id.encode()), (headers.CONTENT_TYPE, headers.JSON))
        try:
            # A topic that is not there would be waited for.
            async with asyncio.timeout(self._most_seconds):
                await self._producer.send(topic, body, headers=about, partition=partition)
        except TimeoutError as error:
            if self._producer.lacks(topic):
                self._note_missing(topic)
            raise BrokerUnavailableError("a reply was not taken in time") from error
        except AssertionError as error:
            # This is how aiokafka says that there is no such partition.
            raise BrokerUnavailableError("a reply names a partition that is not there") from error
        self._missing_until.pop(topic, None)

    def _is_missing(self, topic: str) -> bool:
        until = self._missing_until.get(topic)
        if until is None or self._now() < until:
            return until is not None
        # This one looks whether the topic is there by now; others do not wait beside it.
        self._note_missing(topic)
        return False

    def _note_missing(self, topic: str) -> None:
        if len(self._missing_until) >= _MOST_MISSING:
            self._missing_until.clear()
        self._missing_until[topic] = self._now() + _MISSING_SECONDS
