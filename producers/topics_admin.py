"""Create the topics that are missing; never change one that exists."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code

from domain.errors import BrokerUnavailableError, InvalidInputError, PermanentError
from producers.connection import KafkaConnection
from schemas.topics import LANES, Topics

logger = logging.getLogger(__name__)

_EXISTS: Final = 36
BROKERS_DEFAULT: Final = -1
_REQUEST_MS: Final = 15_000
_STOP_SECONDS: Final = 5.0
# A dead letter is its record and the reason on top; it must fit where the record just did.
_DEAD_LETTER_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """How topics are made.

    ``partitions_of`` names single topics without their prefix; a ``replication`` of -1 is the broker's own.
    """

    partitions: int = 24
    request_partitions: int = 6
    replication: int = BROKERS_DEFAULT
    retention_ms: int | None = None
    partitions_of: Mapping[str, int] = field(default_factory=dict)


class TopicsAdmin:
    """Sees to it that every topic is there."""

    def __init__(self, connection: KafkaConnection, topics: Topics, settings: TopicSettings) -> None:
        self._connection = connection
        self._topics = topics
        self._settings = settings

    async def create_missing(self) -> tuple[str, ...]:
        """Create what is missing and return its names.

        Raises:
            BrokerUnavailableError: the broker cannot be reached.
            PermanentError: the broker refuses a topic; the message names it and the broker's reason.
        """
        return await create_missing(self._connection, list(self._wanted()))

    async def missing(self) -> tuple[str, ...]:
        """Return the names of the topics that are not there.

        Raises:
            BrokerUnavailableError: the broker cannot be reached.
        """
        there = await existing_topics(self._connection)
        return tuple(name for name in self._topics.every if name not in there)

    def _wanted(self) -> Iterable[NewTopic]:
        topics, settings = self._topics, self._settings
        requests = {topics.injection_requests, topics.queries}
        for name in topics.every:
            default = settings.request_partitions if name in requests else settings.partitions
            partitions = settings.partitions_of.get(name.removeprefix(topics.prefix), default)
            yield _new_topic(name, partitions, settings.replication, self._config(name))

    def _config(self, name: str) -> dict[str, str]:
        if name == self._topics.facts:
            return {"cleanup.policy": "compact"}
        config = {"max.message.bytes": str(_DEAD_LETTER_BYTES)} if name == self._topics.dead_letters else {}
        jobs = {self._topics.jobs(lane) for lane in LANES}
        if self._settings.retention_ms is not None and name not in jobs:
            config["retention.ms"] = str(self._settings.retention_ms)
        return config


async def existing_topics(connection: KafkaConnection) -> frozenset[str]:
    """Return the names of all topics of the broker.

    Raises:
        BrokerUnavailableError: the broker cannot be reached.
    """
    admin = AIOKafkaAdminClient(**{**connection.options(), "request_timeout_ms": _REQUEST_MS})
    try:
        await admin.start()
        return frozenset(await admin.list_topics())
    except KafkaError as error:
        raise BrokerUnavailableError(f"topics cannot be listed: {type(error).__name__}") from error
    finally:
        await _closed(admin)


async def partitions_of(connection: KafkaConnection, topic: str) -> Sequence[int]:
    """Return the partitions of ``topic``, which is not made by asking.

    Raises:
        BrokerUnavailableError: the broker cannot be reached.
        InvalidInputError: there is no such topic.
    """
    admin = AIOKafkaAdminClient(**{**connection.options(), "request_timeout_ms": _REQUEST_MS})
    try:
        await admin.start()
        (described,) = await admin.describe_topics([topic])
    except KafkaError as error:
        raise BrokerUnavailableError(f"topics cannot be described: {type(error).__name__}") from error
    finally:
        await _closed(admin)
    if described["error_code"]:
        raise InvalidInputError(f"{topic}: no such topic", field="--topic")
    return [one["partition"] for one in described["partitions"]]


async def ensure_topic(connection: KafkaConnection, topic: str, *, partitions: int = 1) -> None:
    """Create ``topic`` unless it exists, with the broker's own defaults; for a caller's reply topic.

    Raises:
        BrokerUnavailableError: the broker cannot be reached.
        PermanentError: the broker refuses the topic.
    """
    await create_missing(connection, [_new_topic(topic, partitions, BROKERS_DEFAULT, {})])


async def create_missing(connection: KafkaConnection, wanted: Sequence[NewTopic]) -> tuple[str, ...]:
    """Create those of ``wanted`` that do not exist and return their names.

    Raises:
        BrokerUnavailableError: the broker cannot be reached.
        PermanentError: the broker refuses a topic; the message names it and the broker's reason.
    """
    admin = AIOKafkaAdminClient(**{**connection.options(), "request_timeout_ms": _REQUEST_MS})
    try:
        await admin.start()
        there = set(await admin.list_topics())
        missing = [topic for topic in wanted if topic.name not in there]
        if not missing:
            return ()
        response: Any = await admin.create_topics(missing, timeout_ms=_REQUEST_MS)
    except KafkaError as error:
        raise BrokerUnavailableError(f"topics cannot be made: {type(error).__name__}") from error
    finally:
        await _closed(admin)
    return tuple(name for name, code, *_ in response.topic_errors if _is_new(name, code))


def _new_topic(name: str, partitions: int, replication: int, config: Mapping[str, str]) -> NewTopic:
    return NewTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        # The client takes the broker's default only beside a list of assignments, be it an empty one.
        replica_assignments={} if replication == BROKERS_DEFAULT else None,
        topic_configs=dict(config),
    )


def _is_new(name: str, code: int) -> bool:
    """Read the answer for one topic: the client raises nothing by itself.

    Raises:
        PermanentError: the broker refuses it.
    """
    if code == 0:
        return True
    if code == _EXISTS:
        return False
    raise PermanentError(f"the broker refuses the topic {name}: {for_code(code).__name__}")


async def _closed(admin: AIOKafkaAdminClient) -> None:
    """Close ``admin``, for a few seconds at most."""
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await admin.close()
    except (KafkaError, TimeoutError) as error:
        logger.warning("the admin client did not close cleanly: %s", type(error).__name__)
