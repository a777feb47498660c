"""What is measured now and then: how far consumers and relay have got, and how full the pools are."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from domain.errors import InfrastructureError
from producers.topics_admin import existing_topics
from service.components import Component
from service.parts import ConsumerPart, Reached, Recurring, RelayPart
from service.processes import Report, tell
from service.surroundings import WRITE, Surroundings
from storage.condition import require_writes
from storage.outbox import backlog
from telemetry.exposition import exposition
from telemetry.metrics import Metrics

_EVERY_S: Final = 2.0
_ANSWER_S: Final = 4.0


def observing(shared: Surroundings, parts: Sequence[Component]) -> Recurring:
    """Return the component that keeps the gauges of ``parts`` up to date."""
    metrics = shared.metrics

    async def observe() -> None:
        for part in parts:
            match part:
                case ConsumerPart():
                    _observe_consumer(metrics, part)
                case RelayPart(relay=relay):
                    metrics.relay_leaders.set(int(relay.leads))
                    if relay.leads:
                        # While the database is away the relay tells of it, and the gauges stay as they were.
                        with suppress(InfrastructureError):
                            await _observe_outbox(shared)
                case _:
                    continue
        _observe_pools(shared)

    return Recurring("observing", observe, every=_EVERY_S)


def reporting(shared: Surroundings, parts: Sequence[Component]) -> Recurring:
    """Return the component that tells whoever started this process how it is."""

    async def report() -> None:
        unready = tuple(part.name for part in parts if not part.state().is_ready)
        tell(Report(metrics=exposition(shared.metrics.registry).decode(), unready=unready))

    return Recurring("reporting", report, every=_EVERY_S)


def reached(shared: Surroundings) -> Sequence[Component]:
    """Return the components that tell whether database and broker are there."""
    awaited = shared.metrics.awaited

    async def database() -> None:
        # A connection of its own: a pool would wait for one, and could not say why none comes.
        await require_writes(shared.database.url.get_secret_value(), answer_within=_ANSWER_S)

    async def broker() -> None:
        await existing_topics(shared.broker)

    return [
        Reached(name, look, on_looked=awaited.labels(what=name).set)
        for name, look in (("database", database), ("broker", broker))
    ]


def _observe_consumer(metrics: Metrics, part: ConsumerPart) -> None:
    consumer, topic = part.consumer, part.topic
    metrics.consumer_lag.labels(topic=topic).set(consumer.lag)
    metrics.consumer_in_flight.labels(topic=topic).set(consumer.in_flight)
    metrics.consumer_poll_age.labels(topic=topic).set(consumer.poll_age)
    metrics.consumer_stalled.labels(topic=topic).set(consumer.stalled)


async def _observe_outbox(shared: Surroundings) -> None:
    waiting, seconds = await backlog(await shared.pool(WRITE))
    shared.metrics.outbox_waiting.set(waiting)
    shared.metrics.outbox_lag.set(seconds)


def _observe_pools(shared: Surroundings) -> None:
    for name, pool in shared.pools.items():
        shared.metrics.pool_connections.labels(pool=name, state="used").set(pool.used)
        shared.metrics.pool_connections.labels(pool=name, state="idle").set(pool.idle)
        shared.metrics.pool_waiting.labels(pool=name).set(pool.waiting)
