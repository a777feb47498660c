"""The roles that answer: the responder over Kafka, and HTTP."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from consumers.injection_requested import InjectionAnswers, InjectionWaits
from consumers.memory_queries import QueryAnswers
from consumers.requests import Answer, RequestHandler, Wait
from consumers.responder import Responder, ResponderSettings
from domain.accept_conversation import AcceptConversation
from domain.answer_query import AnswerQuery
from domain.build_injection import BuildInjection
from domain.gather_context import GatherContext
from domain.listings import Listings
from domain.search_memory import SearchMemory
from domain.session_waits import SessionWaits
from gateway.http import Door, build_app, build_starting_app
from gateway.parts import AccessToken, EdgeParts, GatewayParts, Readiness
from gateway.server import HttpServer
from producers.replies import Replies
from schemas.export import asyncapi
from service.components import Component
from service.measured import Counted, MeasuredEmbedder, MeasuredInjection, NotedFacts
from service.parts import HttpPart, ProcessPart, Recurring, ResponderPart
from service.surroundings import READ, WRITE, Surroundings
from storage.forgetting import PostgresForgetting
from storage.intake import PostgresIntake
from storage.last_seen import PostgresLastSeen
from storage.listings import PostgresListings
from storage.reads import PostgresReads
from storage.searches import PostgresSearches

logger = logging.getLogger(__name__)

_REQUEST_FETCH_WAIT_MS: Final = 10
_STAMP_S: Final = 1.0
_MODEL_MARGIN_S: Final = 5.0


async def responder_parts(shared: Surroundings) -> Sequence[Component]:
    """Return the responder to injections and queries, on a pool of its own."""
    reads = PostgresReads(await shared.pool(READ))
    search, context = await _searching(shared)
    inject, stamping = await _injection(shared, reads, context)
    settings, topics = shared.settings, shared.topics
    answers = QueryAnswers(
        AnswerQuery(reads=reads),
        search=search,
        context=context,
        lists=Listings(reads=PostgresListings(await shared.pool(READ))),
        char_budget=settings.memory_injection_char_budget,
    )
    replies = Replies(shared.producer(linger_ms=0), patterns=settings.afterword_reply_topics)
    counted = Counted(shared.metrics, topic_prefix=topics.prefix)

    def answering(topic: str, answer: Answer, *, wait: Wait = lambda _record: None) -> RequestHandler:
        return RequestHandler(answer, replies, wait=wait, on_answered=partial(counted.answered, topic))

    injections, queries = topics.injection_requests, topics.queries
    responder = Responder(
        shared.broker,
        {
            injections: answering(
                injections, InjectionAnswers(inject), wait=InjectionWaits(SessionWaits(reads=reads))
            ),
            queries: answering(queries, answers),
        },
        ResponderSettings(
            group=f"{topics.prefix}afterword.responder",
            fetch_max_wait_ms=min(
                settings.afterword_fetch_wait_ms or _REQUEST_FETCH_WAIT_MS, _REQUEST_FETCH_WAIT_MS
            ),
            session_timeout_ms=min(
                settings.afterword_session_timeout_ms, ResponderSettings().session_timeout_ms
            ),
            heartbeat_interval_ms=min(
                settings.afterword_heartbeat_ms, ResponderSettings().heartbeat_interval_ms
            ),
        ),
    )
    return [ResponderPart(responder), stamping]


class Http:
    """HTTP: it answers how the service is from the start, and everything else once `opened`."""

    def __init__(self, shared: Surroundings, readiness: Readiness, processes: Sequence[ProcessPart]) -> None:
        """Take the port; ``processes`` may grow.

        Raises:
            OSError: the address or the port cannot be had.
        """
        self._shared = shared
        settings = shared.settings
        self._edge: dict[str, Any] = {
            "readiness": readiness,
            "metrics": shared.metrics,
            "body_limit": settings.afterword_http_body_bytes,
            "tokens": tuple(
                AccessToken(secret=token.secret.get_secret_value(), tenant_id=token.tenant_id)
                for token in settings.api_tokens
            ),
            "other_metrics": lambda: [one.metrics for one in processes if one.metrics is not None],
            "asyncapi": asyncapi(shared.topics, version=version("afterword")),
            "version": version("afterword"),
        }
        self._door = Door(build_starting_app(EdgeParts(**self._edge)))
        server = HttpServer(self._door, host=settings.afterword_host, port=settings.memory_port)
        server.bind()
        logger.info("HTTP at http://%s:%s", server.host, server.port)
        self.part = HttpPart(server)

    async def opened(self) -> Component:
        """Let requests through to the memory; return what stamps the facts that were given out."""
        shared, settings = self._shared, self._shared.settings
        reads = PostgresReads(await shared.pool(READ))
        _, context = await _searching(shared)
        inject, stamping = await _injection(shared, reads, context)
        write = await shared.pool(WRITE)
        grace = timedelta(seconds=settings.afterword_ended_grace_sec)
        intake = PostgresIntake(write, outgoing=shared.outgoing, clock=shared.clock)
        self._door.app = build_app(
            GatewayParts(
                **self._edge,
                inject=inject,
                accept=AcceptConversation(intake=intake, tokenizer=shared.tokenizer, grace=grace),
                answers=AnswerQuery(reads=reads),
                forget=PostgresForgetting(write, outgoing=shared.outgoing),
                clock=shared.clock,
                pause=asyncio.sleep,
                answer_within_s=settings.memory_llm_timeout_sec + _MODEL_MARGIN_S,
            )
        )
        return stamping


async def _searching(shared: Surroundings) -> tuple[SearchMemory, GatherContext]:
    facts = PostgresSearches(await shared.pool(READ))
    search = SearchMemory(
        facts=facts,
        embedder=MeasuredEmbedder(await shared.embedder(), shared.metrics),
        tokenizer=shared.tokenizer,
        clock=shared.clock,
    )
    return search, GatherContext(core=facts, search=search)


async def _injection(
    shared: Surroundings, reads: PostgresReads, context: GatherContext
) -> tuple[MeasuredInjection, Component]:
    seen = NotedFacts(PostgresLastSeen(await shared.pool(READ)), shared.clock)
    build = BuildInjection(
        reads=reads, context=context, seen=seen, char_budget=shared.settings.memory_injection_char_budget
    )
    stamping = Recurring("last seen", seen.flush, every=_STAMP_S, also_at_end=True)
    return MeasuredInjection(build, shared.metrics), stamping
