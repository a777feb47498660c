"""The roles that write: intake, extraction, relay and upkeep."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from consumers.conversation_ended import ConversationEndedHandler
from consumers.conversation_messages import MessagePostedHandler
from consumers.conversation_replay import ConversationReplayHandler
from consumers.extraction_jobs import ExtractionJobHandler
from consumers.failure_limit import FailureLimit
from consumers.failures import FailureGuard, Work
from consumers.keyed import KeyedConsumer
from consumers.memory_commands import MemoryCommandHandler
from consumers.redriven import Redriven
from consumers.settings import ConsumerSettings
from consumers.worker_shares import LaneShare, WorkerShares
from domain.accept_conversation import AcceptConversation, AcceptMessage
from domain.command_facts import CommandFacts
from domain.extract_session import ExtractSession
from domain.follow_up import FollowUp
from domain.outbox import WaitingRecord
from domain.redo_degraded import RedoDegraded
from producers.outbox_relay import OutboxRelay
from producers.replies import Replies
from schemas.headers import MESSAGE
from schemas.topics import LANES, LaneName
from service.components import Component
from service.measured import (
    Counted,
    MeasuredEmbedder,
    MeasuredExtractor,
    MeasuredJobs,
    MeasuredJudge,
    MeasuredProvider,
)
from service.parts import ConsumerPart, Recurring, RelayPart
from service.surroundings import WRITE, Surroundings
from service.wiring import (
    ask_judge_of,
    extraction_limits,
    extractor_of,
    judge_of,
    model_chain_of,
    policy_of,
    rules_of,
    stop_budget,
    tenant_slots,
    worker_shares,
)
from storage.dead_letters import PostgresDeadLetters
from storage.degraded_jobs import PostgresDegradedJobs
from storage.fact_commands import PostgresFactCommands
from storage.intake import PostgresIntake
from storage.jobs import PostgresJobs
from storage.summaries import PostgresSummaries

# Longer than a busy consumer needs, since seven idle ones ask anew each time it runs out.
_FETCH_WAIT_MS: Final = 100
_STRANDED: Final = timedelta(minutes=10)
_UPKEEP_S: Final = 60.0
_REDO_S: Final = 15.0
_REDO_AFTER: Final = timedelta(minutes=1)
_MOST_REDONE: Final = 64
_IN_HAND_TO_WORKERS: Final = 2


async def intake_parts(shared: Surroundings) -> Sequence[Component]:
    """Return the consumers of ended conversations, of their messages and of replayed ones."""
    pool = await shared.pool(WRITE)
    intake = PostgresIntake(pool, outgoing=shared.outgoing, clock=shared.clock)
    grace = timedelta(seconds=shared.settings.afterword_ended_grace_sec)
    accept = AcceptConversation(intake=intake, tokenizer=shared.tokenizer, grace=grace)
    post = AcceptMessage(intake=intake, tokenizer=shared.tokenizer, grace=grace)
    counted, topics = _counted(shared), shared.topics
    posted = MessagePostedHandler(post, on_repairs=counted.repairs)
    replayed = ConversationReplayHandler(accept, on_repairs=counted.repairs, on_verdict=counted.verdict)
    letters = await _dead_letters(shared)
    handlers: dict[str, tuple[str, Work]] = {
        "intake": (
            topics.ended,
            ConversationEndedHandler(accept, on_repairs=counted.repairs, on_verdict=counted.verdict),
        ),
        "messages": (topics.messages, posted),
        "replay": (topics.replay, Redriven(replayed, letters=letters, kinds={MESSAGE: posted})),
    }
    return [await _consumer(shared, name, topic, handler) for name, (topic, handler) in handlers.items()]


async def extraction_parts(shared: Surroundings) -> Sequence[Component]:
    """Return one consumer for each lane of jobs; the embedder is started and must be that of the database."""
    await shared.pool(WRITE)
    embedder = await shared.embedder()
    metrics = shared.metrics
    chain = model_chain_of(
        shared.settings, await shared.http(), measured=lambda provider: MeasuredProvider(provider, metrics)
    )
    judge = MeasuredJudge(judge_of(shared.settings, chain), metrics) if chain is not None else None
    extract = ExtractSession(
        jobs=MeasuredJobs(await _jobs(shared), metrics, shared.clock),
        extractor=MeasuredExtractor(extractor_of(shared.settings, chain), metrics),
        embedder=MeasuredEmbedder(embedder, metrics),
        policy=policy_of(shared.settings),
        limits=extraction_limits(shared.settings),
        clock=shared.clock,
        ask_judge=ask_judge_of(shared.settings, judge) if judge is not None else None,
        follow_up=FollowUp(
            summaries=PostgresSummaries(await shared.pool(WRITE), outgoing=shared.outgoing),
            every=shared.settings.memory_summary_messages,
        ),
    )
    shares = worker_shares(shared.settings)
    return [await _lane(shared, lane, extract, shares) for lane in LANES]


async def _lane(
    shared: Surroundings, lane: LaneName, extract: ExtractSession, shares: WorkerShares
) -> ConsumerPart:
    workers = shared.settings.afterword_jobs_in_flight
    share = LaneShare(shares, lane, in_hand=workers * _IN_HAND_TO_WORKERS)
    shared.metrics.workers_busy.labels(lane=lane).set_function(lambda: shares.busy(lane))
    shared.metrics.workers_waited_for.labels(lane=lane).set_function(lambda: shares.waiting(lane))
    handler = Redriven(ExtractionJobHandler(extract, share=share), letters=await _dead_letters(shared))
    # What goes back at once takes a place, too, for as long as that takes.
    most = workers * (_IN_HAND_TO_WORKERS + 1)
    part = await _consumer(shared, f"jobs.{lane}", shared.topics.jobs(lane), handler, most=most)
    share.unread = lambda: part.consumer.lag - part.consumer.uncommitted
    return part


async def command_parts(shared: Surroundings) -> Sequence[Component]:
    """Return the consumer of commands."""
    commands = PostgresFactCommands(
        await shared.pool(WRITE),
        outgoing=shared.outgoing,
        tokenizer=shared.tokenizer,
        rules=rules_of(shared.settings),
    )
    embedder = MeasuredEmbedder(await shared.embedder(), shared.metrics)
    replies = Replies(shared.producer(linger_ms=0), patterns=shared.settings.afterword_reply_topics)
    handler = MemoryCommandHandler(CommandFacts(commands=commands, embedder=embedder), replies, shared.clock)
    return [await _consumer(shared, "commands", shared.topics.commands, handler)]


async def relay_parts(shared: Surroundings) -> Sequence[Component]:
    """Return the outbox relay."""

    def sent(records: Sequence[WaitingRecord]) -> None:
        shared.metrics.outbox_published.inc(len(records))

    relay = OutboxRelay(shared.outbox, shared.producer(linger_ms=0), on_sent=sent)
    return [RelayPart(relay)]


async def upkeep_parts(shared: Surroundings) -> Sequence[Component]:
    """Return what is done now and then: jobs whose record was lost with a broker are ordered again."""
    jobs = await _jobs(shared)

    async def requeue() -> None:
        await jobs.requeue_stranded(older_than=_STRANDED)

    parts: list[Component] = [Recurring("upkeep", requeue, every=_UPKEEP_S)]
    if shared.settings.providers:
        parts.append(await _redo_part(shared))
    return parts


async def _redo_part(shared: Surroundings) -> Component:
    """Return what has conversations read by a model that rules read while none could be reached."""
    degraded = PostgresDegradedJobs(await shared.pool(WRITE), outgoing=shared.outgoing)
    order_again = RedoDegraded(jobs=degraded, older_than=_REDO_AFTER, most=_MOST_REDONE)

    async def redo() -> None:
        await order_again()

    return Recurring("redo", redo, every=_REDO_S)


async def _jobs(shared: Surroundings) -> PostgresJobs:
    return PostgresJobs(
        await shared.pool(WRITE),
        outgoing=shared.outgoing,
        tokenizer=shared.tokenizer,
        clock=shared.clock,
        worker=shared.worker,
        rules=rules_of(shared.settings),
        slots=tenant_slots(shared.settings),
    )


def _counted(shared: Surroundings) -> Counted:
    return Counted(shared.metrics, topic_prefix=shared.topics.prefix)


async def _dead_letters(shared: Surroundings) -> PostgresDeadLetters:
    return PostgresDeadLetters(await shared.pool(WRITE), outgoing=shared.outgoing, clock=shared.clock)


async def _consumer(
    shared: Surroundings, name: str, topic: str, handler: Work, *, most: int | None = None
) -> ConsumerPart:
    settings, prefix = shared.settings, shared.topics.prefix
    dead_letters = await _dead_letters(shared)
    guard = FailureGuard(
        handler, dead_letters=dead_letters, limit=FailureLimit(), on_handled=_counted(shared).handled
    )
    group = f"{prefix}afterword.{name}"
    instance = settings.afterword_instance_id
    consumer = KeyedConsumer(
        guard,
        shared.broker,
        ConsumerSettings(
            topics=(topic,),
            group=group,
            instance_id=f"{instance}.{name}" if instance else None,
            max_in_flight=most or settings.afterword_jobs_in_flight,
            drain=settings.afterword_drain_sec,
            stop_budget=stop_budget(settings).parts,
            fetch_max_wait_ms=settings.afterword_fetch_wait_ms or _FETCH_WAIT_MS,
            session_timeout_ms=settings.afterword_session_timeout_ms,
            heartbeat_interval_ms=settings.afterword_heartbeat_ms,
        ),
    )
    return ConsumerPart(name, topic.removeprefix(prefix), consumer)
