"""Settings of what reads conversations: models, rules and the embedder (docs/reference/settings.md)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, assert_never

from pydantic import Field, SecretStr

from service.connections import EmbedderChoice, EmbedderKind, ModelProvider, ProviderKind
from service.setting_types import (
    Count,
    HttpUrl,
    Kinds,
    Listed,
    ModelFallback,
    Seconds,
    Share,
    Temperature,
    also,
)
from service.settings_group import Conflict, SettingsGroup

ANTHROPIC_URL: Final = "https://api.anthropic.com"
GEMINI_URL: Final = "https://generativelanguage.googleapis.com"


class ModelSettings(SettingsGroup):
    """Which models and which embedder are asked, and what their answers must be like."""

    llm_provider_order: Kinds | None = None
    """Language models, in the order in which they are asked: `generate`, `openai`, `anthropic`, `gemini`.
    Unset: `generate` if it has an endpoint, else none, and rules read the conversations."""
    memory_llm_endpoint: HttpUrl | None = also(None, "MEMORY_LLM_ENDPOINT", "LLM_ENDPOINT")
    """URL of the `generate` model. No default: no conversation leaves for a host that nobody named."""
    memory_llm_api_token: SecretStr | None = also(None, "MEMORY_LLM_API_TOKEN", "LLM_API_TOKEN")
    """Bearer token of the `generate` model."""
    openai_base_url: HttpUrl | None = None
    """URL of an OpenAI-compatible server, with its `/v1`; used if `LLM_PROVIDER_ORDER` names `openai`."""
    openai_api_key: SecretStr | None = None
    """Key of that server, if it asks for one."""
    openai_model: str | None = None
    """Model of that server."""
    anthropic_base_url: HttpUrl = ANTHROPIC_URL
    """URL that speaks Anthropic's format; used if `LLM_PROVIDER_ORDER` names `anthropic`."""
    anthropic_api_key: SecretStr | None = None
    """Key for it; needed by the default URL."""
    anthropic_model: str | None = None
    """Model of it."""
    gemini_base_url: HttpUrl = GEMINI_URL
    """URL that speaks Gemini's format; used if `LLM_PROVIDER_ORDER` names `gemini`."""
    gemini_api_key: SecretStr | None = None
    """Key for it; needed by the default URL."""
    gemini_model: str | None = None
    """Model of it."""
    memory_llm_timeout_sec: Seconds = also(30.0, "MEMORY_LLM_TIMEOUT_SEC", "LLM_TIMEOUT_SEC")
    """Time that a model has for one answer."""
    memory_llm_temperature: Temperature = 0.1
    """Temperature of an extraction."""
    memory_llm_max_tokens: Count = 1024
    """Longest answer of an extraction."""
    memory_extraction_hints: bool = False
    """Whether a long conversation about several things is read twice: first for who and what it speaks of."""
    memory_llm_small: bool = False
    """The models are small ones: they are sent the user's turns alone, asked for less, and read once."""
    memory_consolidation_temperature: Temperature = 0.1
    """Temperature of a judgement."""
    memory_consolidation_max_tokens: Count = 256
    """Longest answer of a judgement."""
    memory_model_fallback: ModelFallback = ModelFallback.RULES
    """When no model can be reached: `rules` read the window, to be done again; or the job has to `wait`."""
    memory_max_transcript_chars: Annotated[int, Field(ge=500, le=1_000_000)] = 12_000
    """Size of the windows that a long conversation is read in; nothing is cut off."""
    memory_min_confidence: Share = 0.65
    """Confidence from which on a candidate becomes a fact."""
    memory_pending_confidence: Share = 0.45
    """Confidence from which on a candidate waits for a second saying."""

    memory_summary_messages: Annotated[int, Field(ge=2, le=100_000)] = 20
    """Messages after which a conversation is summed up, and summed up again."""

    memory_rules_off: Listed = ()
    """Rules that are switched off, by their names with commas between (`en/likes-3`), as a fact's reasoning
    tells them."""
    memory_rules_file: Path | None = None
    """A TOML file with rules of your own, which come before those of the package."""
    memory_types_file: Path | None = None
    """A TOML file with memory types and slots that are added, or take the place of those of their name."""

    afterword_embedder: EmbedderKind | None = None
    """`local`, `tei`, or `openai` for a compatible endpoint. Unset: `tei` if there is a URL, else `local`."""
    memory_embed_url: HttpUrl | None = also(None, "MEMORY_EMBED_URL", "EMBED_URL")
    """URL of the embeddings service; no default."""
    memory_embed_api_token: SecretStr | None = None
    """Bearer token of the embeddings service, if it asks for one."""
    embedding_model: str | None = None
    """Model of the embeddings service, kept beside every vector. Unset: what the service says."""
    embedding_dimensions: Annotated[int, Field(ge=1, le=16_000)] | None = None
    """Dimensions of its vectors. Unset: what the service gives."""
    memory_embedding_timeout_sec: Seconds = also(
        10.0, "MEMORY_EMBEDDING_TIMEOUT_SEC", "EMBEDDING_TIMEOUT_SEC"
    )
    """Time that the embedder has for one answer."""
    embedding_required: bool = True
    """Whether a job waits for the embedder; otherwise facts are stored without a vector and get it later."""
    memory_judge_distance: Annotated[float, Field(ge=0, le=2)] = 0.3
    """Distance up to which two values of a slot are put to a model as perhaps one; it decides nothing."""
    memory_dedup_embedding_limit: Count = 5
    """How many near values are put to a model for one value in one call."""
    memory_dedup_embedding_threshold: Annotated[float, Field(ge=0, le=2)] | None = None
    """Distance below which two texts may say the same. Unset: the embedder's own."""

    @property
    def providers(self) -> tuple[ModelProvider, ...]:
        """The language models to ask, in order; none means that rules read the conversations."""
        order = self.llm_provider_order
        if order is None:
            order = (ProviderKind.GENERATE,) if self.memory_llm_endpoint else ()
        return tuple(self._provider(kind) for kind in order)

    def _provider(self, kind: ProviderKind) -> ModelProvider:
        match kind:
            case ProviderKind.OPENAI:
                where = (self.openai_base_url, self.openai_api_key, self.openai_model)
            case ProviderKind.ANTHROPIC:
                where = (self.anthropic_base_url, self.anthropic_api_key, self.anthropic_model)
            case ProviderKind.GEMINI:
                where = (self.gemini_base_url, self.gemini_api_key, self.gemini_model)
            case ProviderKind.GENERATE:
                where = (self.memory_llm_endpoint, self.memory_llm_api_token, None)
            case unreachable:
                assert_never(unreachable)
        endpoint, token, model = where
        return ModelProvider(kind=kind, endpoint=endpoint or "", api_token=token, model=model)

    @property
    def embedder(self) -> EmbedderChoice:
        """Where vectors come from."""
        by_url = EmbedderKind.TEI if self.memory_embed_url else EmbedderKind.LOCAL
        kind = self.afterword_embedder or by_url
        return EmbedderChoice(
            kind=kind,
            url=self.memory_embed_url if kind is not EmbedderKind.LOCAL else None,
            api_token=self.memory_embed_api_token,
            model=self.embedding_model,
            dimensions=self.embedding_dimensions,
        )

    def conflicts(self) -> Iterable[Conflict]:
        """Yield what of models and embedder does not fit together."""
        yield from super().conflicts()
        order = self.llm_provider_order or ()
        yield "LLM_PROVIDER_ORDER", len(set(order)) < len(order), "a provider is there twice"
        for kind in order:
            for name, is_missing in self._needs(kind):
                yield name, is_missing, f"needed by LLM_PROVIDER_ORDER ({kind})"
        yield from self._embedder_conflicts()

    def _needs(self, kind: ProviderKind) -> Iterable[tuple[str, bool]]:
        """Yield what a provider cannot do without, and whether it is missing."""
        one = self._provider(kind)
        if kind is ProviderKind.GENERATE:
            yield "MEMORY_LLM_ENDPOINT", not one.endpoint
            return
        prefix = kind.value.upper()
        yield f"{prefix}_BASE_URL", not one.endpoint
        yield f"{prefix}_MODEL", one.model is None
        yield f"{prefix}_API_KEY", one.endpoint in (ANTHROPIC_URL, GEMINI_URL) and one.api_token is None

    def _embedder_conflicts(self) -> Iterable[Conflict]:
        kind, url = self.embedder.kind, self.memory_embed_url
        yield (
            "MEMORY_EMBED_URL",
            kind is not EmbedderKind.LOCAL and url is None,
            "needed by AFTERWORD_EMBEDDER",
        )
        has_no_model = kind is EmbedderKind.OPENAI and self.embedding_model is None
        yield "EMBEDDING_MODEL", has_no_model, "needed by AFTERWORD_EMBEDDER (openai)"
