"""The replay topic's other end: conversations that are sent there again, and where they come from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

import orjson
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from domain.errors import BrokerUnavailableError
from domain.feed_replay import Page, ReplayRecord
from domain.outbox import Headers
from domain.replays import Replay, ReplayMode, StoredSession, StoredSessions, TopicRecords
from producers.client_messages import scope_key
from producers.connection import KafkaConnection, Producer
from producers.topics_admin import partitions_of
from schemas import headers
from schemas.conversation import DEFAULT_TENANT
from schemas.topics import Topics

_PATIENCE_MS: Final = 5_000
_REQUEST_MS: Final = 10_000
Record: TypeAlias = "ConsumerRecord[Any, Any]"

#: What told one sending of a record; another sending has its own.
_OF_ONE_SENDING: Final = ("replay-", headers.DLQ_PREFIX, headers.REPLY_TO, headers.REPLY_PARTITION)


class PublishReplay:
    """``domain.feed_replay.ReplayPublisher``."""

    def __init__(self, producer: Producer, topics: Topics) -> None:
        self._producer = producer
        self._topic = topics.replay

    async def __call__(self, replay: Replay, records: Sequence[ReplayRecord]) -> None:
        """Return when the broker has all of ``records``.

        Raises:
            BrokerUnavailableError: it may not have them all; publishing all again changes nothing.
        """
        marks: Headers = (
            (headers.REPLAY_ID, replay.replay_id.encode()),
            (headers.REPLAY_MODE, replay.mode.value.encode()),
        )
        if replay.mode is not ReplayMode.FILL:
            marks = (*marks, (headers.REPLAY_GENERATION, replay.generation.encode()))
        waiting = [
            await self._producer.enqueue(self._topic, one.value, key=one.key, headers=(*one.headers, *marks))
            for one in records
        ]
        if not all(await self._producer.settle(waiting)):
            raise BrokerUnavailableError("the broker did not acknowledge every conversation")


class FindsSessions(Protocol):
    """Finds the stored sessions that a replay means."""

    async def next_sessions(self, replay: Replay, *, most: int) -> Sequence[StoredSession]:
        """Return the next ones behind the replay's position."""
        ...

    async def count_sessions(self, mode: ReplayMode, label: str, source: StoredSessions) -> int:
        """Count those for which the mode still has something to do."""
        ...


class StoredSessionSource:
    """``domain.feed_replay.ReplaySource`` over stored sessions: ids and times, since the words are there."""

    def __init__(self, sessions: FindsSessions, source: StoredSessions) -> None:
        self._sessions = sessions
        self._source = source

    async def next(self, replay: Replay, *, most: int) -> Page:
        """Return the next sessions in the order of their ends."""
        found = await self._sessions.next_sessions(replay, most=most)
        position = _position(found[-1]) if found else replay.position or {}
        return Page(records=[_ended(one) for one in found], position=position, is_last=len(found) < most)

    async def left(self, replay: Replay) -> int:
        """Count the sessions of which there is still no job."""
        return await self._sessions.count_sessions(replay.mode, replay.generation, self._source)


class TopicSource:
    """``domain.feed_replay.ReplaySource`` over the records of a topic: their bytes, as they were sent.

    One partition is read after the other.
    """

    def __init__(self, connection: KafkaConnection, source: TopicRecords) -> None:
        self._connection = connection
        self._source = source
        self._ends = {TopicPartition(source.topic, int(one)): end for one, end in source.ends.items()}
        self._consumer: AIOKafkaConsumer | None = None
        self._next: tuple[TopicPartition, int] | None = None

    async def stop(self) -> None:
        """Disconnect."""
        consumer, self._consumer, self._next = self._consumer, None, None
        if consumer is not None:
            await consumer.stop()

    async def next(self, replay: Replay, *, most: int) -> Page:
        """Return the next records; what is not replayed is counted by the reason.

        Raises:
            BrokerUnavailableError: the broker is away, or has nothing where there should be records.
        """
        starts: Mapping[str, int | str] = replay.position or self._source.starts
        at = {one: int(starts.get(str(one.partition), 0)) for one in self._ends}
        records: list[ReplayRecord] = []
        skipped: Counter[str] = Counter()
        left = [one for one in self._ends if at[one] < self._ends[one]]
        if left:
            place = left[0]
            found, behind = await self._read(place, at[place], most=most)
            for one in found:
                self._sort(one, records, skipped)
            # Deleted since by the topic's retention, compacted away, or marks of transactions.
            skipped["not_there"] += behind - at[place] - len(found)
            at[place] = behind
        is_last = all(at[one] >= end for one, end in self._ends.items())
        position = {str(one.partition): offset for one, offset in at.items()}
        return Page(records=records, position=position, skipped=dict(+skipped), is_last=is_last)

    async def left(self, replay: Replay) -> None:
        """Say that it cannot be told: a record may be about a session that others speak of, too."""

    def _sort(self, record: Record, records: list[ReplayRecord], skipped: Counter[str]) -> None:
        """Put ``record`` with those that are replayed, or count why it is not."""
        session = _session_of(record.value)
        if session is None or record.value is None:
            skipped["no_conversation"] += 1
        elif self._source.tenant_id not in (None, session[0]):
            skipped["other_tenant"] += 1
        else:
            kept = tuple((name, value or b"") for name, value in record.headers if not _is_of_one(name))
            records.append(ReplayRecord(session=session, key=record.key, value=record.value, headers=kept))

    async def _read(self, place: TopicPartition, at: int, *, most: int) -> tuple[list[Record], int]:
        """Return at most ``most`` records of ``place`` from ``at`` on, and the offset behind them."""
        end = self._ends[place]
        try:
            consumer = await self._connected()
            # To seek throws away what is fetched already.
            if self._next != (place, at):
                consumer.assign([place])
                consumer.seek(place, at)
            self._next = None
            found = await consumer.getmany(place, timeout_ms=_PATIENCE_MS, max_records=most)
            behind: int = await consumer.position(place)
        except KafkaError as error:
            await self.stop()
            raise BrokerUnavailableError(f"the topic cannot be read: {type(error).__name__}") from error
        if behind <= at:
            raise BrokerUnavailableError(f"{place.topic} has given nothing for {_PATIENCE_MS // 1_000} s")
        self._next = (place, behind)
        return [one for one in found.get(place, ()) if one.offset < end], min(behind, end)

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._connection.options(),
                group_id=None,
                enable_auto_commit=False,
                # Where records were deleted since, it goes on with the first that is there.
                auto_offset_reset="earliest",
                request_timeout_ms=_REQUEST_MS,
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return self._consumer


async def topic_records(
    connection: KafkaConnection,
    topic: str,
    *,
    from_offset: int | None,
    since: datetime | None,
    until: datetime | None,
    tenant_id: str | None,
) -> TopicRecords:
    """Find which records of ``topic`` a replay means: from an offset or a time, to a time or the present end.

    Raises:
        InvalidInputError: there is no such topic; ``field`` names the option.
        BrokerUnavailableError: the broker cannot be reached.
    """
    consumer = AIOKafkaConsumer(**connection.options(), group_id=None, request_timeout_ms=_REQUEST_MS)
    try:
        # A consumer that is asked for a topic that is not there may create it.
        places = [TopicPartition(topic, one) for one in await partitions_of(connection, topic)]
        await consumer.start()
        firsts = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        starts = {one: max(first, from_offset or 0) for one, first in firsts.items()}
        if since is not None:
            starts = await _offsets_at(consumer, since, ends)
        if until is not None:
            ends = await _offsets_at(consumer, until, ends)
    except KafkaError as error:
        raise BrokerUnavailableError(f"the broker cannot be reached: {type(error).__name__}") from error
    finally:
        await consumer.stop()
    return TopicRecords(
        topic=topic,
        starts={str(one.partition): min(at, ends[one]) for one, at in starts.items()},
        ends={str(one.partition): at for one, at in ends.items()},
        tenant_id=tenant_id,
    )


async def _offsets_at(
    consumer: AIOKafkaConsumer, time: datetime, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the offset of the first record at ``time`` or later; the end where there is none."""
    found = await consumer.offsets_for_times({one: int(time.timestamp() * 1_000) for one in ends})
    return {one: at.offset if (at := found.get(one)) is not None else end for one, end in ends.items()}


def _ended(session: StoredSession) -> ReplayRecord:
    fields = {
        "tenant_id": session.tenant_id,
        "user_id": str(session.user_id),
        "avatar_id": str(session.avatar_id),
        "session_id": str(session.session_id),
        "ended_at": session.ended_at.isoformat(),
    }
    return ReplayRecord(
        session=(session.tenant_id, session.session_id),
        key=scope_key(session.tenant_id, session.user_id),
        value=orjson.dumps(fields),
        headers=((headers.CONTENT_TYPE, headers.JSON),),
    )


def _position(session: StoredSession) -> Mapping[str, str]:
    return {
        "ended_at": session.ended_at.isoformat(),
        "tenant_id": session.tenant_id,
        "session_id": str(session.session_id),
    }


def _session_of(value: bytes | None) -> tuple[str, UUID] | None:
    """Return which session a record is about; None where it is no conversation."""
    try:
        fields = orjson.loads(value or b"")
        return str(fields.get("tenant_id") or DEFAULT_TENANT), UUID(str(fields["session_id"]))
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _is_of_one(name: str) -> bool:
    return name.startswith(_OF_ONE_SENDING)
