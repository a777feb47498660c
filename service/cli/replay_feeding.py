"""Feeding a replay from a terminal: shown, stopped by a signal, gone on with later."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID, uuid4

from domain.errors import ConflictError, InfrastructureError
from domain.feed_replay import FeedEnd, FeedReplay, Pace, ReplaySource, Surrounding
from domain.replays import Replay, ReplayStatus, TopicRecords
from producers.connection import Producer, ProducerSettings
from producers.replaying import PublishReplay, StoredSessionSource, TopicSource
from schemas.topics import Topics
from service.cli.output import err
from service.cli.progress import ReplayBar
from service.settings import Settings
from service.wiring import broker_of
from storage.replays import FEEDER_LIVES, PostgresReplays


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """How a replay is fed from this terminal."""

    pace: Pace
    waits: bool


async def fed(settings: Settings, store: PostgresReplays, replay: Replay, how: Feeding) -> FeedEnd:
    """Feed ``replay`` from here until it is fed, paused, or taken over; SIGTERM pauses it.

    Raises:
        ConflictError: another command feeds it.
        CancelledError: Ctrl-C; the replay is paused.
    """
    feeder = uuid4()
    if not await store.begin_feeding(replay.replay_id, feeder):
        seconds = f"{FEEDER_LIVES.total_seconds():.0f}"
        raise ConflictError(f"another command feeds {replay.replay_id}, or did within the last {seconds} s")
    task = asyncio.create_task(_feed(settings, store, replay, feeder, how))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        end = await task
    except asyncio.CancelledError:
        await _paused(store, replay.replay_id, feeder)
        me = asyncio.current_task()
        if me is not None and me.cancelling():
            raise
        return FeedEnd.STOPPED
    if end is FeedEnd.FED and how.waits:
        await store.move(replay.replay_id, start=(ReplayStatus.RUNNING,), to=ReplayStatus.DONE)
    await store.end_feeding(replay.replay_id, feeder)
    return end


async def _paused(store: PostgresReplays, replay_id: str, feeder: UUID) -> None:
    with suppress(InfrastructureError):
        await store.move(replay_id, start=(ReplayStatus.RUNNING,), to=ReplayStatus.PAUSED)
        await store.end_feeding(replay_id, feeder)
    err().print(how_to_go_on(replay_id), markup=False, soft_wrap=True)


async def _feed(
    settings: Settings, store: PostgresReplays, replay: Replay, feeder: UUID, how: Feeding
) -> FeedEnd:
    topics = Topics(settings.afterword_topic_prefix)
    producing = ProducerSettings(linger_ms=5, idempotent=settings.afterword_kafka_idempotence)
    with ReplayBar(replay) as bar:
        surrounding = Surrounding(
            clock=time.monotonic, sleep=asyncio.sleep, on_progress=bar.show, on_waiting=bar.wait
        )
        async with (
            Producer(broker_of(settings), producing) as producer,
            _source(settings, store, replay) as source,
        ):
            feed = FeedReplay(
                store=store,
                source=source,
                publish=PublishReplay(producer, topics),
                pace=how.pace,
                on=surrounding,
            )
            return await feed(replay, feeder, waits=how.waits)


@asynccontextmanager
async def _source(settings: Settings, store: PostgresReplays, replay: Replay) -> AsyncGenerator[ReplaySource]:
    if isinstance(replay.source, TopicRecords):
        async with TopicSource(broker_of(settings), replay.source) as records:
            yield records
    else:
        yield StoredSessionSource(store)


def how_to_go_on(replay_id: str) -> str:
    """Say how a replay that was paused goes on."""
    return f"paused; `afterword replay resume {replay_id}` goes on"
