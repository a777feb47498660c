"""Requests and replies, and the client, on a real broker."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from consumers.injection_requested import InjectionAnswers
from consumers.memory_queries import QueryAnswers
from consumers.requests import Answered, RequestHandler
from consumers.responder import Responder, ResponderSettings
from domain.answer_query import FactsQuery
from domain.conversation import UserRef
from domain.errors import NotFoundError, StorageUnavailableError
from domain.events import JobChanged
from domain.gather_context import Gathered
from domain.injection import Injection, InjectionRequest
from domain.jobs import Job, JobStatus
from domain.listings import FactStory, ListingPage, ListingQuery
from domain.search_memory import FoundFact, SearchRequest
from domain.stores import FactPage
from producers.client import MemoryClient
from producers.client_errors import (
    MemoryNotFoundError,
    MemoryRequestError,
    MemoryTimeoutError,
    MemoryUnavailableError,
    SessionDiedError,
)
from producers.connection import KafkaConnection, Producer
from producers.encoding import Encoder
from producers.replies import Replies
from producers.topics_admin import TopicsAdmin, TopicSettings, ensure_topic
from schemas.topics import Topics
from tests.integration.kafka.conftest import read_all, until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

USER = UUID("00000000-0000-4000-8000-000000000002")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Memory:
    """The use cases of the responder, in memory."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.is_away = False
        self.seconds = 0.0

    async def __call__(self, request: InjectionRequest) -> Injection:
        await asyncio.sleep(self.seconds)
        if self.is_away:
            raise StorageUnavailableError("postgresql://secret")
        return Injection(text=f"for {request.user.key}", facts_count=1)

    async def job(self, tenant_id: str, *, job_id: UUID | None = None, session_id: UUID | None = None) -> Job:
        job = self.jobs.get(session_id) if session_id else None
        if job is None:
            raise NotFoundError("no such job")
        return job

    async def facts(self, query: FactsQuery) -> FactPage:
        return FactPage(items=(), next_cursor=f"{query.limit}")

    async def search(self, request: SearchRequest) -> Sequence[FoundFact]:
        return ()

    async def page(self, query: ListingQuery) -> ListingPage:
        return ListingPage(items=({"limit": query.limit},), next_cursor=None)

    async def story(self, tenant_id: str, user: UserRef, avatar_id: UUID, fact_id: UUID) -> FactStory:
        raise NotFoundError("no such fact")

    async def context(self, request: SearchRequest) -> Gathered:
        return Gathered(user_id=None, core=(), relevant=(), pending=())


class Served:
    """A running responder and what a test may look at."""

    def __init__(self, connection: KafkaConnection, topics: Topics, memory: Memory) -> None:
        self.connection = connection
        self.topics = topics
        self.memory = memory
        self.answered: Counter[Answered] = Counter()

    def client(self, **more: Any) -> MemoryClient:
        return MemoryClient(
            self.connection,
            topic_prefix=self.topics.prefix,
            reply_topic=f"{self.topics.prefix}x.replies",
            **more,
        )

    def note(self, answered: Answered, seconds: float) -> None:
        assert seconds >= 0
        self.answered[answered] += 1


def job(session_id: UUID, status: JobStatus = JobStatus.COMPLETED) -> Job:
    return Job(
        job_id=uuid4(),
        tenant_id="default",
        user_id=USER,
        avatar_id=UUID(int=0),
        session_id=session_id,
        generation="live",
        status=status,
        revision=1,
        gate=None,
        plan="free",
        attempts=1,
        queued_at=NOW,
        started_at=None,
        finished_at=None,
        next_attempt_at=None,
        outcome=None,
        error=None,
    )


def _answers(memory: Memory) -> QueryAnswers:
    return QueryAnswers(memory, search=memory.search, context=memory.context, lists=memory, char_budget=2_000)


@asynccontextmanager
async def serving(connection: KafkaConnection, topics: Topics, session_ms: int) -> AsyncGenerator[Served]:
    served = Served(connection, topics, Memory())
    await TopicsAdmin(connection, topics, TopicSettings(partitions=2, request_partitions=2)).create_missing()
    async with Producer(connection) as producer:
        replies = Replies(producer)
        injections = RequestHandler(InjectionAnswers(served.memory), replies, on_answered=served.note)
        queries = RequestHandler(_answers(served.memory), replies, on_answered=served.note)
        responder = Responder(
            connection,
            {topics.injection_requests: injections, topics.queries: queries},
            ResponderSettings(
                group=f"{topics.prefix}responder", session_timeout_ms=session_ms, heartbeat_interval_ms=500
            ),
        )
        await responder.start()
        try:
            async with asyncio.timeout(20):
                await responder.ready()
            yield served
        finally:
            await responder.stop()


@pytest.fixture
async def served(connection: KafkaConnection, topic_prefix: str, session_ms: int) -> AsyncGenerator[Served]:
    async with serving(connection, Topics(topic_prefix), session_ms) as served:
        yield served


async def test_an_injection_comes_back_on_the_callers_reply_topic(served: Served) -> None:
    async with served.client() as client:
        replies = await asyncio.gather(*(client.inject(user=f"u{number}") for number in range(20)))

    assert [reply.text for reply in replies] == [f"for u{number}" for number in range(20)]


async def test_a_reply_carries_the_correlation_id_and_the_content_type_alone(served: Served) -> None:
    async with served.client() as client:
        await client.inject(user=USER)

    (reply,) = await read_all(served.connection, f"{served.topics.prefix}x.replies")
    assert [name for name, _ in reply.headers] == ["correlation_id", "content-type"]
    assert json.loads(reply.value)["ok"] is True


async def test_a_reply_goes_to_the_partition_that_was_asked_for(served: Served) -> None:
    topic = f"{served.topics.prefix}x.replies"
    await ensure_topic(served.connection, topic, partitions=3)

    async with served.client(reply_partition=2) as client, served.client(reply_partition=1) as other:
        reply, other_reply = await asyncio.gather(client.inject(user="a"), other.inject(user="b"))

    assert (reply.text, other_reply.text) == ("for a", "for b")
    records = await read_all(served.connection, topic, partitions=3)
    assert sorted(record.partition for record in records) == [1, 2]


async def test_an_outage_of_the_store_is_answered_at_once_and_quotes_nothing(served: Served) -> None:
    served.memory.is_away = True

    async with served.client() as client:
        with pytest.raises(MemoryUnavailableError) as raised:
            await client.inject(user=USER, timeout=5.0)

    assert raised.value.code == "storage_unavailable"
    assert raised.value.retryable
    assert "secret" not in str(raised.value)


async def test_what_the_client_can_see_is_wrong_is_not_sent(served: Served) -> None:
    async with served.client() as client:
        with pytest.raises(MemoryRequestError, match="mode"):
            await client.inject(user=USER, mode="psychic")

    assert not served.answered


async def test_a_slow_answer_is_dropped_at_its_deadline(served: Served) -> None:
    served.memory.seconds = 2.0

    async with served.client() as client:
        with pytest.raises(MemoryTimeoutError):
            await client.inject(user=USER, timeout=0.3)
        await until(lambda: served.answered[Answered.DEADLINE] == 1)


@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ({"deadline_ms": b"1"}, Answered.DEADLINE),
        ({"reply_to": b"conversation.ended.v1"}, Answered.REPLY_TOPIC),
        ({"reply_to": b"\xff\xfe"}, Answered.REPLY_TOPIC),
        ({"correlation_id": b"\xff"}, Answered.UNDECODABLE),
        ({"reply_partition": b"99"}, Answered.UNSENT),
        ({"x-other": b"\xff\xfe"}, Answered.OK),
    ],
)
async def test_a_request_with_bad_headers_harms_nobody_else(
    served: Served, producer: Producer, headers: Mapping[str, bytes], answered: Answered
) -> None:
    reply_topic = f"{served.topics.prefix}x.replies"
    await ensure_topic(served.connection, reply_topic)
    about = {
        "correlation_id": b"c1",
        "reply_to": reply_topic.encode(),
        "deadline_ms": str(int((time.time() + 30) * 1_000)).encode(),
        **headers,
    }
    body = json.dumps({"user_id": str(USER)}).encode()

    await producer.send(served.topics.injection_requests, body, headers=tuple(about.items()))

    await until(lambda: served.answered[answered] == 1)
    async with served.client() as client:
        assert (await client.inject(user=USER)).applied


@pytest.mark.parametrize("body", [b"\xff", b"{}", b'{"type": "facts.guess"}', b'{"type": "jobs.get"}'])
async def test_a_query_that_is_none_is_answered_as_an_invalid_request(
    served: Served, producer: Producer, body: bytes
) -> None:
    reply_topic = f"{served.topics.prefix}x.replies"
    await ensure_topic(served.connection, reply_topic)
    about = (("correlation_id", b"c1"), ("reply_to", reply_topic.encode()))

    await producer.send(served.topics.queries, body, headers=about)
    await until(lambda: served.answered[Answered.FAILED] == 1)

    (reply,) = await read_all(served.connection, reply_topic)
    assert json.loads(reply.value)["error"]["code"] == "invalid_request"


async def test_queries_are_answered_by_type(served: Served) -> None:
    session_id = uuid4()
    served.memory.jobs[session_id] = job(session_id)

    async with served.client() as client:
        found = await client.job(session_id=session_id)
        page = await client.facts(user=USER, limit=7)
        with pytest.raises(MemoryNotFoundError):
            await client.job(session_id=uuid4())

    assert found.status == "completed"
    assert (page.items, page.next_cursor) == ((), "7")


async def tell(served: Served, producer: Producer, ended: Job) -> None:
    encode = Encoder(served.topics, "test")
    for record in encode(JobChanged(event_id=uuid4(), change=str(ended.status), job=ended)):
        await producer.send(record.topic, record.value, key=record.key, headers=record.headers)


async def test_waiting_ends_with_the_event_of_the_sessions_job(served: Served, producer: Producer) -> None:
    session_id = uuid4()

    async with served.client() as client, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.wait_until_remembered(session_id, timeout=15))
        await until(lambda: served.answered[Answered.FAILED] == 1)
        await tell(served, producer, job(uuid4()))
        await tell(served, producer, job(session_id, JobStatus.RUNNING))
        await tell(served, producer, job(session_id))

    assert waiting.result().status == "completed"


async def test_waiting_for_a_session_that_died_or_never_came_raises(
    served: Served, producer: Producer
) -> None:
    died = uuid4()
    served.memory.jobs[died] = job(died, JobStatus.DEAD)

    async with served.client() as client:
        with pytest.raises(SessionDiedError):
            await client.wait_until_remembered(died, timeout=15)
        with pytest.raises(MemoryTimeoutError):
            await client.wait_until_remembered(uuid4(), timeout=0.5)


async def test_what_is_told_arrives_under_the_scope_key(served: Served) -> None:
    session_id = uuid4()

    async with served.client() as client:
        await client.conversation_ended(
            user="ana",
            session_id=session_id,
            ended_at=NOW,
            messages=[{"role": "user", "content": "hi", "sent_at": NOW}],
        )
        await client.post_message(user="ana", session_id=session_id, position=0, role="user", content="hi")
        with pytest.raises(MemoryRequestError):
            await client.post_message(
                user="ana", session_id=session_id, position=-1, role="user", content="hi"
            )

    (ended,) = await read_all(served.connection, served.topics.ended, partitions=2)
    (posted,) = await read_all(served.connection, served.topics.messages, partitions=2)
    assert ended.key == b"default:ana"
    assert posted.key == str(session_id).encode()


async def test_the_stream_of_facts_starts_at_the_beginning_and_tells_what_is_gone(
    served: Served, producer: Producer
) -> None:
    gone = uuid4()
    await producer.send(served.topics.facts, b"not a fact", key=b"\xff")
    await producer.send(served.topics.facts, None, key=str(gone).encode())

    async with served.client() as client:
        stream = client.facts_stream()
        async with asyncio.timeout(10):
            first = await anext(stream)
        await stream.aclose()

    assert (first.fact_id, first.fact) == (gone, None)


async def test_a_client_without_a_broker_says_so_in_time() -> None:
    with pytest.raises(MemoryUnavailableError):
        async with MemoryClient("127.0.0.1:1", timeout=2.0):
            pass
