"""One running service for the tests that share it; each test has users of its own."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from producers.client import MemoryClient
from schemas.injection import InjectionReply
from schemas.jobs import Job
from schemas.topics import Topics
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.publishing import Publisher, publishing, until
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

MORNING: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GRACE_S: Final = 1


@pytest.fixture(scope="session")
def afterword(
    kafka: KafkaServer, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningService]:
    """The service, with a short wait for messages that come apart."""
    url = postgres.create_database()
    service = RunningService(
        tmp_path_factory.mktemp("afterword"),
        kafka=kafka,
        database_url=url,
        topic_prefix=f"e2e-{uuid4().hex[:6]}.",
        settings={"AFTERWORD_ENDED_GRACE_SEC": str(GRACE_S)},
    )
    try:
        asyncio.run(service.start())
        yield service
    finally:
        service.clear()
        postgres.drop_database(url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A conversation engine with one user, and a look behind the doors."""

    client: MemoryClient
    publisher: Publisher
    tables: Tables
    topics: Topics
    kafka: str
    user_id: UUID

    def conversation(self, *said: str, day: int = 0, **more: Any) -> dict[str, Any]:
        """Return an ended conversation in which the user said ``said``, on ``day``."""
        start = MORNING + timedelta(days=day)
        messages = [
            {
                "message_id": f"m{place}",
                "role": "user",
                "content": text,
                "sent_at": (start + timedelta(minutes=place)).isoformat(),
            }
            for place, text in enumerate(said)
        ]
        fields = {
            "session_id": str(uuid4()),
            "user_id": str(self.user_id),
            "ended_at": (start + timedelta(hours=1)).isoformat(),
            "messages": messages,
        }
        changed = {**fields, **more}
        return {name: value for name, value in changed.items() if value is not None}

    async def tell(self, conversation: dict[str, Any]) -> Job:
        """Tell that ``conversation`` ended and return its job when that has ended, too."""
        await self.publisher.send_json(self.topics.ended, conversation)
        return await self.client.wait_until_remembered(UUID(conversation["session_id"]), timeout=20)

    async def settled(self) -> None:
        """Return when everything that was sent about this user so far has had its effect."""
        # Records of one scope are taken in the order in which they were sent.
        await self.tell(self.conversation("Hm.", day=-1))

    async def values(self, *, user: UUID | str | None = None, **more: Any) -> dict[str, str]:
        """Return the active facts as key and value."""
        page = await self.client.facts(user=user or self.user_id, **more)
        return {fact.fact_key: fact.fact_value for fact in page.items}

    async def injected(self, *, user: UUID | str | None = None, **more: Any) -> InjectionReply:
        """Return the injection."""
        return await self.client.inject(user=user or self.user_id, **more)

    async def revision_of(self, session_id: UUID, revision: int) -> Job:
        """Return the job of ``session_id`` when it has ended at ``revision``."""

        async def is_there() -> bool:
            job = await self.client.job(session_id=session_id)
            return job.revision == revision and job.finished_at is not None and job.status == "completed"

        await until(is_there, within=20, what=f"revision {revision}", every=0.1)
        return await self.client.job(session_id=session_id)


@pytest.fixture
async def engine(afterword: RunningService) -> AsyncGenerator[Engine]:
    """An engine with a new user."""
    client = MemoryClient(
        afterword.kafka,
        topic_prefix=afterword.topics.prefix,
        reply_topic=f"{afterword.topics.prefix}engine.replies",
    )
    async with (
        client,
        publishing(afterword.kafka) as publisher,
        looking(afterword.database_url) as tables,
    ):
        yield Engine(
            client=client,
            publisher=publisher,
            tables=tables,
            topics=afterword.topics,
            kafka=afterword.kafka,
            user_id=uuid4(),
        )
