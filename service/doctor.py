"""Examine every connection and setting, and say what to do about what is wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from clients.endpoint import open_client
from domain.errors import AfterwordError, InvalidInputError
from producers.topics_admin import TopicsAdmin
from schemas.topics import Topics
from service.settings import Settings, unknown_names
from service.wiring import broker_of, database_of, embedder_of, topic_settings
from storage.condition import DatabaseCondition, condition_of

_WITHIN_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found; ``advice`` is empty where nothing is wrong."""

    check: str
    found: str
    advice: str = ""

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to do."""
        return not self.advice


async def examine(settings: Settings) -> Sequence[Finding]:
    """Check settings, database, broker, topics, embedder and models, one after the other."""
    return [
        _names(),
        await _checked(
            "database", lambda: _database(settings), "is it up, and is AFTERWORD_DATABASE_URL right?"
        ),
        await _checked(
            "broker and topics", lambda: _broker(settings), "is it up, and is AFTERWORD_KAFKA right?"
        ),
        await _checked(
            "embedder", lambda: _embedder(settings), "see MEMORY_EMBED_URL and EMBEDDING_DIMENSIONS"
        ),
        _models(settings),
    ]


def _names() -> Finding:
    unknown = unknown_names()
    if unknown:
        return Finding(check="settings", found=", ".join(unknown), advice="nothing reads these: misspelt?")
    return Finding(check="settings", found="every value is valid")


async def _checked(check: str, look: Callable[[], Awaitable[Finding]], advice: str) -> Finding:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await look()
    except InvalidInputError as error:
        return Finding(check=check, found="not set", advice=str(error))
    except TimeoutError:
        return Finding(check=check, found=f"no answer within {_WITHIN_S:.0f} s", advice=advice)
    except (AfterwordError, OSError) as error:
        return Finding(check=check, found=str(error), advice=advice)


async def _database(settings: Settings) -> Finding:
    condition = await condition_of(database_of(settings).direct_url.get_secret_value())
    return Finding(check="database", found=condition.described, advice=_advice(condition))


def _advice(condition: DatabaseCondition) -> str:
    if not condition.is_new_enough:
        return "PostgreSQL 15 with pgvector 0.7 or later is needed"
    if condition.is_read_only:
        return "it takes no writes: a standby, or default_transaction_read_only"
    return f"run `afterword migrate` ({condition.pending} to apply)" if condition.pending else ""


async def _broker(settings: Settings) -> Finding:
    topics = Topics(settings.afterword_topic_prefix)
    missing = await TopicsAdmin(broker_of(settings), topics, topic_settings(settings)).missing()
    found = f"answers; {len(topics.every) - len(missing)} of {len(topics.every)} topics are there"
    return Finding(check="broker and topics", found=found, advice="run `afterword topics`" if missing else "")


async def _embedder(settings: Settings) -> Finding:
    async with open_client(connections=1) as http:
        embedder = embedder_of(settings, http)
        try:
            await embedder.start()
            await embedder.embed(["ready"])
        finally:
            await embedder.aclose()
    return Finding(check="embedder", found=f"{embedder.info.model}, {embedder.info.dimensions} dimensions")


def _models(settings: Settings) -> Finding:
    kinds = [str(one.kind) for one in settings.providers]
    return Finding(check="models", found=", ".join(kinds) or "none set: rules read the conversations")
