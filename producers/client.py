"""The client for conversation engines (docs/architecture/client.md)."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from aiokafka.errors import KafkaError
from pydantic import BaseModel, ValidationError

from domain.errors import BrokerUnavailableError
from producers.client_commands import ClientCommands
from producers.client_errors import (
    MemoryClientError,
    MemoryNotFoundError,
    MemoryTimeoutError,
    MemoryUnavailableError,
    SessionDiedError,
)
from producers.client_messages import (
    UserId,
    checked,
    message_fields,
    messages_fields,
    result_of,
    scope_key,
    user_fields,
)
from producers.client_reads import ClientReads
from producers.connection import KafkaConnection, Producer, ProducerSettings
from producers.followers import FactNow, fact_of, following, job_of
from producers.reply_reader import Requests
from producers.topics_admin import ensure_topic
from schemas import conversation, injection, queries
from schemas.injection import InjectionReply
from schemas.jobs import Job
from schemas.topics import Topics

DEFAULT_REPLY_TOPIC: Final = "afterword.client.replies"
_UNFINISHED: Final = frozenset({"queued", "running", "retrying"})
_ASK_AGAIN_SECONDS: Final = 0.2

T = TypeVar("T", bound=BaseModel)


class MemoryClient(ClientReads, ClientCommands):
    """Tells Afterword of conversations and asks it for memory, over Kafka; an async context manager.

    Several clients may share a reply topic: each drops what it did not ask for. A busy client better has a
    ``reply_partition`` of its own. A ``user`` that is a ``UUID`` is an id of Afterword's, a text one of the
    caller's own. Every call ends within its ``timeout`` in seconds and raises a ``MemoryClientError``.
    """

    def __init__(
        self,
        bootstrap_servers: str | KafkaConnection,
        *,
        tenant_id: str = conversation.DEFAULT_TENANT,
        topic_prefix: str = "",
        reply_topic: str = DEFAULT_REPLY_TOPIC,
        reply_partition: int = 0,
        timeout: float = 10.0,
    ) -> None:
        self._connection = (
            KafkaConnection(bootstrap_servers=bootstrap_servers, client_id="afterword-client")
            if isinstance(bootstrap_servers, str)
            else bootstrap_servers
        )
        self._tenant_id = tenant_id
        self._topics = Topics(topic_prefix)
        self._reply_topic = reply_topic
        self._timeout = timeout
        self._producer = Producer(self._connection, ProducerSettings())
        self._requests = Requests(
            self._connection, self._producer, reply_topic=reply_topic, reply_partition=reply_partition
        )
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(max(self._timeout, 10.0)), AsyncExitStack() as opening:
                await opening.enter_async_context(self._producer)
                await ensure_topic(self._connection, self._reply_topic)
                await opening.enter_async_context(self._requests)
                self._open = opening.pop_all()
        except (KafkaError, BrokerUnavailableError, TimeoutError) as error:
            raise MemoryUnavailableError("the broker cannot be reached") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def conversation_ended(
        self,
        *,
        user: UserId,
        session_id: UUID,
        ended_at: datetime,
        messages: Sequence[Mapping[str, Any]] | None = None,
        transcript: str | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> None:
        """Tell that a conversation ended; returns when the broker has it.

        Without ``messages`` and ``transcript`` its messages were posted before. ``more`` is any other field
        of ``ConversationEnded``: ``avatar_id``, ``started_at``, ``message_count``, ``timezone``.

        Raises:
            MemoryRequestError: the service would refuse it.
            MemoryUnavailableError: the broker did not take it.
        """
        fields = {
            "tenant_id": self._tenant_id,
            **user_fields(user),
            **message_fields(more),
            "session_id": str(session_id),
            "ended_at": ended_at.isoformat(),
            "messages": messages_fields(messages),
            "transcript": transcript,
        }
        body = checked(conversation.ConversationEnded, fields)
        await self._tell(self._topics.ended, body, scope_key(self._tenant_id, user), timeout)

    async def post_message(
        self,
        *,
        user: UserId,
        session_id: UUID,
        position: int,
        role: str,
        content: str,
        timeout: float | None = None,
        **more: Any,
    ) -> None:
        """Tell one message of a conversation that goes on; ``position`` counts from 0 within the session.

        ``more`` is any other field of ``MessagePosted``: ``message_id``, ``sent_at``, ``avatar_id``.

        Raises:
            MemoryRequestError: the service would refuse it.
            MemoryUnavailableError: the broker did not take it.
        """
        fields = {
            "tenant_id": self._tenant_id,
            **user_fields(user),
            **message_fields(more),
            "session_id": str(session_id),
            "position": position,
            "role": role,
            "content": content,
        }
        body = checked(conversation.MessagePosted, fields)
        await self._tell(self._topics.messages, body, str(session_id).encode(), timeout)

    async def inject(self, *, user: UserId, timeout: float | None = None, **more: Any) -> InjectionReply:
        """Return the memory of ``user`` for the next prompt.

        ``more`` is any other field of ``InjectionRequest``: ``avatar_id``, ``char_budget``, ``as_of``.
        """
        fields = {"tenant_id": self._tenant_id, **user_fields(user), **message_fields(more)}
        body = checked(injection.InjectionRequest, fields)
        return await self._ask(self._topics.injection_requests, body, user, InjectionReply, timeout=timeout)

    async def job(
        self,
        *,
        session_id: UUID | None = None,
        job_id: UUID | None = None,
        timeout: float | None = None,
    ) -> Job:
        """Return a job by its id, or the newest of a session.

        Raises:
            MemoryNotFoundError: there is none, or not yet.
        """
        fields = {
            "type": "jobs.get",
            "tenant_id": self._tenant_id,
            "session_id": str(session_id) if session_id else None,
            "job_id": str(job_id) if job_id else None,
        }
        body = checked(queries.JobsGet, fields)
        about = str(session_id or job_id)
        return await self._ask(self._topics.queries, body, about, Job, timeout=timeout)

    async def wait_until_remembered(self, session_id: UUID, *, timeout: float = 60.0) -> Job:
        """Return the job of ``session_id`` when it has ended.

        Raises:
            MemoryTimeoutError: it has not within ``timeout`` seconds.
            SessionDiedError: it ended as dead.
        """
        try:
            async with (
                asyncio.timeout(timeout),
                following(self._connection, self._topics.events, from_start=False) as records,
            ):
                # Asked after the events are followed: what ends in between is seen by one of the two.
                job = await self._known(session_id)
                while job is None or job.status in _UNFINISHED:
                    told = job_of(await anext(records))
                    is_ours = told is not None and told.session_id == session_id
                    job = told if is_ours and told is not None and self._is_mine(told) else job
        except TimeoutError:
            raise MemoryTimeoutError(f"session {session_id} has not ended within {timeout} s") from None
        if job.status == "dead":
            raise SessionDiedError(f"session {session_id} died: {job.error.code if job.error else 'unknown'}")
        return job

    async def facts_stream(self) -> AsyncGenerator[FactNow]:
        """Give every fact as it is now, then each change, without an end."""
        async with following(self._connection, self._topics.facts, from_start=True) as records:
            async for record in records:
                fact = fact_of(record)
                if fact is not None:
                    yield fact

    @property
    def tenant_id(self) -> str:
        """The tenant that this client speaks for."""
        return self._tenant_id

    async def _command(self, body: bytes, user: UserId, model: type[T], timeout: float | None) -> T:
        return await self._ask(self._topics.commands, body, user, model, timeout=timeout)

    async def _known(self, session_id: UUID) -> Job | None:
        """Ask for the job until the service answers; None when it knows of none yet."""
        while True:
            try:
                return await self.job(session_id=session_id, timeout=2.0)
            except MemoryNotFoundError:
                return None
            except MemoryClientError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def _is_mine(self, job: Job) -> bool:
        return job.tenant_id == self._tenant_id

    async def _tell(self, topic: str, body: bytes, key: bytes, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout or self._timeout):
                await self._producer.send(topic, body, key=key)
        except TimeoutError:
            raise MemoryTimeoutError("the broker did not take the record in time") from None
        except BrokerUnavailableError as error:
            raise MemoryUnavailableError("the broker did not take the record") from error

    async def _question(self, body: bytes, about: UserId, model: type[T], timeout: float | None) -> T:
        return await self._ask(self._topics.queries, body, about, model, timeout=timeout)

    async def _ask(
        self, topic: str, body: bytes, about: UserId, model: type[T], *, timeout: float | None
    ) -> T:
        key = scope_key(self._tenant_id, about)
        reply = await self._requests.ask(topic, body, key=key, timeout=timeout or self._timeout)
        try:
            return model.model_validate(result_of(reply))
        except ValidationError as error:
            raise MemoryClientError(f"the reply is no {model.__name__}") from error
