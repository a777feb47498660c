"""From settings to objects: the adapters and use cases of a process, with nothing started yet."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

import httpx

from clients.embeddings.local import LocalEmbedder
from clients.embeddings.openai import EMBEDDINGS_PATH, OpenAIEmbedder
from clients.embeddings.remote import RemoteEmbedder
from clients.embeddings.tei import EMBED_PATH, TeiEmbedder
from clients.endpoint import JsonEndpoint, joined_url
from clients.language import FastTextLanguageGuesser
from clients.llm import anthropic, gemini
from clients.llm.anthropic import MESSAGES_PATH, VERSION, AnthropicProvider
from clients.llm.chain import Patience, ProviderChain
from clients.llm.extractor import ModelExtractor
from clients.llm.gemini import GeminiProvider, content_path
from clients.llm.generate import GenerateProvider
from clients.llm.judge import ModelJudge
from clients.llm.openai import CHAT_PATH, OpenAIProvider
from clients.llm.prompt import ExtractionPrompt, OverviewPrompt
from clients.llm.provider import Provider
from clients.stemming import SnowballStemmer
from consumers.worker_shares import Bounds, WorkerShares
from domain.errors import InvalidInputError
from domain.extract_session import ExtractionLimits
from domain.judging import AskJudge
from domain.memory.gists import Gists
from domain.memory.timeline import Rules
from domain.model_fallback import FallbackExtractor, ModelFallback
from domain.ports import EmbedderInfo, Extractor, Judge
from domain.rules.extractor import RuleExtractor
from domain.validation import Policy
from producers.connection import KafkaConnection
from producers.topics_admin import TopicSettings
from schemas.topics import LaneName, Topics
from service.connections import DatabaseConnection, EmbedderKind, ModelProvider, ProviderKind
from service.own_files import rules_beside, vocabulary_of
from service.settings import Settings

_MS_PER_HOUR: Final = 3_600_000
_DEFAULT_DISTANCE: Final = 0.1
_MOST_MEMORIES: Final = 24
_MOST_OF_A_SMALL_MODEL: Final = 12
_REMOTE_MAX_CHARS: Final = 2_000
_CLOSING_S: Final = 5.0
_CLOSING_SHARE: Final = 0.25

ServiceEmbedder = LocalEmbedder | RemoteEmbedder


class SystemClock:
    """``domain.ports.Clock`` by this machine."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)


def broker_of(settings: Settings) -> KafkaConnection:
    """Return the broker that is set.

    Raises:
        InvalidInputError: none is set.
    """
    if settings.kafka is None:
        raise InvalidInputError(
            "AFTERWORD_KAFKA is not set; `afterword up` starts a broker of its own and prints its address",
            field="AFTERWORD_KAFKA",
        )
    return settings.kafka


def database_of(settings: Settings) -> DatabaseConnection:
    """Return the database that is set.

    Raises:
        InvalidInputError: none is set.
    """
    if settings.database is None:
        raise InvalidInputError(
            "AFTERWORD_DATABASE_URL is not set; `afterword up` starts a database of its own",
            field="AFTERWORD_DATABASE_URL",
        )
    return settings.database


def topic_settings(settings: Settings) -> TopicSettings:
    """Return how topics are made."""
    hours = settings.afterword_retention_hours
    return TopicSettings(
        partitions=settings.afterword_partitions,
        request_partitions=min(settings.afterword_partitions, TopicSettings().request_partitions),
        replication=settings.afterword_replication or TopicSettings().replication,
        retention_ms=hours * _MS_PER_HOUR if hours is not None else None,
    )


def worker_name(settings: Settings) -> str:
    """Name this process in jobs; a restart has another name, so that a job knows how many it has outlived."""
    return f"{settings.afterword_instance_id or 'worker'}-{uuid4().hex[:12]}"


def event_source(topics: Topics) -> str:
    """Name this installation in its events."""
    return f"afterword/{topics.prefix}" if topics.prefix else "afterword"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBudget:
    """What of the time from SIGTERM to the end is for the parts, and what for closing connections."""

    parts: float
    closing: float


def stop_budget(settings: Settings) -> StopBudget:
    """Return how the time of a stop is shared out; both together are what is set."""
    closing = min(_CLOSING_S, settings.afterword_shutdown_sec * _CLOSING_SHARE)
    return StopBudget(parts=settings.afterword_shutdown_sec - closing, closing=closing)


def extraction_limits(settings: Settings) -> ExtractionLimits:
    """Return how long and how often extraction tries."""
    return ExtractionLimits(
        deadline=timedelta(seconds=settings.afterword_job_deadline_sec),
        grace=timedelta(seconds=settings.afterword_ended_grace_sec),
        attempts=settings.afterword_job_attempts,
        attempt_delay=timedelta(seconds=settings.afterword_job_retry_sec),
        window_chars=settings.memory_max_transcript_chars,
        needs_vectors=settings.embedding_required,
    )


def worker_shares(settings: Settings) -> WorkerShares:
    """Return the workers of this process; no tenant, and not the replay lane, ever has all of them."""
    workers = settings.afterword_jobs_in_flight
    most = _most_of(workers)
    lanes: dict[LaneName, Bounds] = {
        "priority": Bounds(weight=settings.afterword_weight_priority, workers=workers, of_one=most),
        "standard": Bounds(weight=settings.afterword_weight_standard, workers=workers, of_one=most),
        "bulk": Bounds(weight=settings.afterword_weight_bulk, workers=workers, of_one=most),
        "replay": Bounds(weight=settings.afterword_weight_replay, workers=most, of_one=max(most // 2, 1)),
    }
    return WorkerShares(workers, lanes)


def tenant_slots(settings: Settings) -> int:
    """Return how many jobs of one tenant run at once, over all replicas."""
    return settings.afterword_tenant_slots or _most_of(settings.afterword_jobs_in_flight)


def _most_of(workers: int) -> int:
    """Return three quarters of ``workers``, and one where there is but one."""
    return max(workers * 3 // 4, 1)


def policy_of(settings: Settings) -> Policy:
    """Return what candidates must be like."""
    return Policy(
        min_confidence=settings.memory_min_confidence, pending_confidence=settings.memory_pending_confidence
    )


def rules_of(settings: Settings) -> Rules:
    """Return how the fold takes statements: how confident for a fact, and which wordings are one."""
    return Rules(
        keep=settings.memory_min_confidence,
        hold=settings.memory_pending_confidence,
        gist=Gists(SnowballStemmer()),
    )


def embedder_of(settings: Settings, http: httpx.AsyncClient) -> ServiceEmbedder:
    """Return the embedder that is chosen.

    Raises:
        InvalidInputError: a remote one was chosen without saying which model and how many dimensions.
    """
    choice = settings.embedder
    if choice.kind is EmbedderKind.LOCAL or choice.url is None:
        return LocalEmbedder()
    if choice.dimensions is None:
        raise InvalidInputError(
            "EMBEDDING_DIMENSIONS: needed with MEMORY_EMBED_URL", field="EMBEDDING_DIMENSIONS"
        )
    info = EmbedderInfo(
        model=choice.model or f"{choice.kind}/{httpx.URL(choice.url).host}",
        dimensions=choice.dimensions,
        near_duplicate_distance=settings.memory_dedup_embedding_threshold or _DEFAULT_DISTANCE,
        max_chars=_REMOTE_MAX_CHARS,
    )
    is_tei = choice.kind is EmbedderKind.TEI
    endpoint = JsonEndpoint(
        client=http,
        url=joined_url(choice.url, EMBED_PATH if is_tei else EMBEDDINGS_PATH),
        token=choice.api_token.get_secret_value() if choice.api_token else None,
        timeout=settings.memory_embedding_timeout_sec,
        name=str(choice.kind),
    )
    return (TeiEmbedder if is_tei else OpenAIEmbedder)(endpoint=endpoint, info=info)


def model_chain_of(
    settings: Settings, http: httpx.AsyncClient, *, measured: Callable[[Provider], Provider]
) -> ProviderChain | None:
    """Return the models in their order, each ``measured``; None where none is set."""
    providers = [measured(_provider(one, settings, http)) for one in settings.providers]
    if not providers:
        return None
    return ProviderChain(providers=providers, patience=Patience(timeout=settings.memory_llm_timeout_sec))


def extractor_of(settings: Settings, chain: ProviderChain | None) -> Extractor:
    """Return the models of ``chain`` with the rules behind them, or rules alone."""
    vocabulary = vocabulary_of(settings)
    rules = RuleExtractor(
        vocabulary=vocabulary,
        languages=FastTextLanguageGuesser(),
        rules=rules_beside(settings, vocabulary),
    )
    if chain is None:
        rules.load("en")
        return rules
    prompt = ExtractionPrompt(
        vocabulary=vocabulary,
        temperature=settings.memory_llm_temperature,
        max_tokens=settings.memory_llm_max_tokens,
        user_turns_only=settings.memory_llm_small,
        max_memories=_MOST_OF_A_SMALL_MODEL if settings.memory_llm_small else _MOST_MEMORIES,
    )
    has_hints = settings.memory_extraction_hints and not settings.memory_llm_small
    overview = OverviewPrompt(temperature=settings.memory_llm_temperature) if has_hints else None
    model = ModelExtractor(chain=chain, prompt=prompt, overview=overview)
    return FallbackExtractor(model=model, rules=rules, mode=ModelFallback(settings.memory_model_fallback))


def judge_of(settings: Settings, chain: ProviderChain) -> ModelJudge:
    """Return the judge that asks the models of ``chain``."""
    return ModelJudge(
        chain=chain,
        temperature=settings.memory_consolidation_temperature,
        max_tokens=settings.memory_consolidation_max_tokens,
    )


def ask_judge_of(settings: Settings, judge: Judge) -> AskJudge:
    """Return what puts open questions to ``judge``, as far apart and as many as is set."""
    return AskJudge(
        judge=judge,
        gist=Gists(SnowballStemmer()),
        distance=settings.memory_judge_distance,
        nearest=settings.memory_dedup_embedding_limit,
    )


def _provider(one: ModelProvider, settings: Settings, http: httpx.AsyncClient) -> Provider:
    token, model = one.api_token.get_secret_value() if one.api_token else None, one.model or ""

    def endpoint(path: str = "", *, key_header: str | None = None, **headers: str) -> JsonEndpoint:
        keys = {key_header: token} if key_header and token else {}
        return JsonEndpoint(
            client=http,
            url=joined_url(one.endpoint, path) if path else one.endpoint,
            token=None if key_header else token,
            headers={**keys, **headers},
            timeout=settings.memory_llm_timeout_sec,
            name=str(one.kind),
        )

    match one.kind:
        case ProviderKind.GENERATE:
            return GenerateProvider(endpoint=endpoint())
        case ProviderKind.OPENAI:
            return OpenAIProvider(endpoint=endpoint(CHAT_PATH), model=model)
        case ProviderKind.ANTHROPIC:
            asked = endpoint(MESSAGES_PATH, key_header=anthropic.KEY_HEADER, **VERSION)
            return AnthropicProvider(endpoint=asked, model=model)
        case ProviderKind.GEMINI:
            return GeminiProvider(
                endpoint=endpoint(content_path(model), key_header=gemini.KEY_HEADER), model=model
            )
