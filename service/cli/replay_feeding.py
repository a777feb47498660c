"""Feeding a replay from a terminal: shown, stopped by a signal, gone on with later."""

import asyncio
import logging
import signal
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from uuid import UUID, uuid4

from domain.errors import ConflictError, InfrastructureError
from domain.feed_replay import FeedEnd, FeedOutcome, FeedReplay, Pace, ReplaySource, Surrounding
from domain.replays import Replay, ReplayStatus, StoredSessions, TopicRecords
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


async def fed(settings: Settings, store: PostgresReplays, replay: Replay, how: Feeding) -> FeedOutcome:
    """Feed ``replay`` from here until it is fed, paused, or taken over; SIGTERM pauses it.

    When all its jobs have ended it is done. What of stored sessions nobody took in is left to be sent
    again: the replay is paused at their beginning.

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
        outcome = await task
        if outcome.end is FeedEnd.FED and how.waits:
            await _ended(store, replay, outcome)
    except asyncio.CancelledError:
        with suppress(InfrastructureError):
            await store.move(replay.replay_id, start=(ReplayStatus.RUNNING,), to=ReplayStatus.PAUSED)
        me = asyncio.current_task()
        if me is not None and me.cancelling():
            err().print(how_to_go_on(replay.replay_id), markup=False, soft_wrap=True)
            raise
        return FeedOutcome(end=FeedEnd.STOPPED)
    finally:
        with suppress(InfrastructureError):
            await store.end_feeding(replay.replay_id, feeder)
    return outcome


async def _ended(store: PostgresReplays, replay: Replay, outcome: FeedOutcome) -> None:
    to = ReplayStatus.DONE
    if outcome.missing and isinstance(replay.source, StoredSessions):
        to = ReplayStatus.PAUSED
        await store.advance(replay.replay_id, position={}, published=0, skipped={})
    await store.move(replay.replay_id, start=(ReplayStatus.RUNNING,), to=to)


async def _feed(
    settings: Settings, store: PostgresReplays, replay: Replay, feeder: UUID, how: Feeding
) -> FeedOutcome:
    # Their clients would tell of an outage again and again; the bar tells it once.
    for client in ("aiokafka", "psycopg"):
        logging.getLogger(client).setLevel(logging.CRITICAL)
    producing = ProducerSettings(linger_ms=5, idempotent=settings.afterword_kafka_idempotence)
    async with AsyncExitStack() as stack:
        bar = stack.enter_context(ReplayBar(replay))
        # Neither is started here: a broker that is away is waited for, as later on.
        producer = Producer(broker_of(settings), producing)
        stack.push_async_callback(producer.stop)
        source: ReplaySource
        if isinstance(replay.source, TopicRecords):
            records = TopicSource(broker_of(settings), replay.source)
            stack.push_async_callback(records.stop)
            source = records
        else:
            source = StoredSessionSource(store, replay.source)
        feed = FeedReplay(
            store=store,
            source=source,
            publish=PublishReplay(producer, Topics(settings.afterword_topic_prefix)),
            pace=how.pace,
            on=Surrounding(
                clock=time.monotonic, sleep=asyncio.sleep, on_progress=bar.show, on_waiting=bar.wait
            ),
        )
        return await feed(replay, feeder, waits=how.waits)


def how_to_go_on(replay_id: str) -> str:
    """Say how a replay that was paused goes on."""
    return f"paused; `afterword replay resume {replay_id}` goes on"
