"""Settings: the only place that reads the environment (docs/reference/settings.md)."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, FilePath, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from domain.errors import AfterwordError
from producers.connection import KafkaConnection
from service.connections import (
    LOOPBACK,
    ApiToken,
    DatabaseConnection,
    DatabaseParts,
    EmbedderChoice,
    EmbedderKind,
    ModelProvider,
    ProviderKind,
    SaslMechanism,
    SecurityProtocol,
    TlsFiles,
)
from service.setting_types import (
    Count,
    DatabaseUrl,
    HttpUrl,
    Kinds,
    Listed,
    LogLevel,
    ModelFallback,
    Name,
    Port,
    Seconds,
    Secrets,
    Servers,
    Share,
    Temperature,
    also,
    complaints,
    upper_case,
)
from telemetry.logs import LogFormat

# Of tests and benchmarks; the last two are what Kubernetes adds beside a service called "afterword".
_FOREIGN: Final = ("AFTERWORD_TEST_", "AFTERWORD_CORPORA", "AFTERWORD_SERVICE_", "AFTERWORD_PORT")
_SHORTEST_TOKEN: Final = 16


class SettingsError(AfterwordError):
    """A setting has a wrong value; the message is one line that names it and shows no value."""


def _data_dir() -> Path:
    return Path("/var/lib/afterword") if os.geteuid() == 0 else Path.home() / ".local/share/afterword"


class Settings(BaseSettings):
    """Everything that differs between deployments; each field is read from the variable of its name."""

    model_config = SettingsConfigDict(
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    afterword_kafka: Servers | None = None
    """Bootstrap servers, `host:port` with commas between. Unset: `up` and `demo` start their own broker."""
    afterword_kafka_security_protocol: Annotated[SecurityProtocol, BeforeValidator(upper_case)] = (
        SecurityProtocol.PLAINTEXT
    )
    """How the broker is spoken to."""
    afterword_kafka_sasl_mechanism: Annotated[SaslMechanism, BeforeValidator(upper_case)] | None = None
    """How name and password are shown to the broker; needed with a `SASL_…` protocol."""
    afterword_kafka_sasl_username: str | None = None
    """Name at the broker."""
    afterword_kafka_sasl_password: SecretStr | None = None
    """Password at the broker."""
    afterword_kafka_ssl_cafile: FilePath | None = None
    """Certificates that the broker's is checked against. Unset: those of the system."""
    afterword_kafka_ssl_certfile: FilePath | None = None
    """Certificate of this client, where the broker asks for one."""
    afterword_kafka_ssl_keyfile: FilePath | None = None
    """Key of that certificate."""
    afterword_kafka_ssl_password: SecretStr | None = None
    """Password of that key."""
    afterword_kafka_idempotence: bool = True
    """Whether producers are idempotent; off for brokers that cannot. Nothing that is promised rests on it."""
    afterword_session_timeout_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 30_000
    """How long a consumer may be silent before its partitions go to others."""
    afterword_heartbeat_ms: Annotated[int, Field(ge=100, le=600_000)] = 3_000
    """How often a consumer says that it lives; a third of the time above or less."""
    afterword_fetch_wait_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How long the broker may hold an empty answer back. Unset: 10 for requests, 100 for everything else."""
    afterword_instance_id: Name | None = None
    """Stable name of this replica, different for each: a restart goes on at once, without a time-out."""
    afterword_topic_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,80}$")] = ""
    """Put before the name of every topic of ours."""
    afterword_create_topics: bool = True
    """Whether topics that are missing are created at the start. One that exists is never changed."""
    afterword_partitions: Count = 24
    """Partitions of a topic that is created; 6 are better on a small machine."""
    afterword_replication: Annotated[int, Field(ge=1, le=100)] | None = None
    """Replicas of a topic that is created. Unset: what the broker does by default."""
    afterword_retention_hours: Count | None = None
    """How long a created topic keeps its records. Unset: what the broker does by default."""
    afterword_reply_topics: Listed = ("*.replies", "*.replies.*")
    """Patterns of the topics that replies may be sent to; a request for another is dropped and counted."""

    afterword_database_url: DatabaseUrl | None = None
    """The database. Unset, and no PG… set: `up` and `demo` start a database of their own."""
    afterword_database_direct_url: DatabaseUrl | None = None
    """The database past a pooler, for relay, leadership and migrations. Unset: the same."""
    pghost: str | None = None
    """Host of the database, instead of a URL; `localhost` when another PG… is set."""
    pgport: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Port of the database; 5432 when another PG… is set."""
    pgdatabase: str | None = None
    """Name of the database; `lis` when another PG… is set."""
    pguser: str | None = None
    """Name at the database; `lis` when another PG… is set."""
    pgpassword: SecretStr | None = None
    """Password at the database."""
    pgsslmode: str | None = None
    """TLS to the database. Unset: `require`, but on this machine what its client does by default."""
    pgchannelbinding: str | None = None
    """Channel binding of the database's login. Unset: what its client does by default."""
    db_pool_max: Count = 10
    """Most connections of one pool."""
    enable_db_on_startup: bool = True
    """Whether a start brings the database up to date; off where `afterword migrate` is run by hand."""

    llm_provider_order: Kinds | None = None
    """Language models, in the order in which they are asked: `generate`, `openai`. Unset: `generate` if it
    has an endpoint, else none, and rules read the conversations."""
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
    memory_llm_timeout_sec: Seconds = also(30.0, "MEMORY_LLM_TIMEOUT_SEC", "LLM_TIMEOUT_SEC")
    """Time that a model has for one answer."""
    memory_llm_temperature: Temperature = 0.1
    """Temperature of an extraction."""
    memory_llm_max_tokens: Count = 1024
    """Longest answer of an extraction."""
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
    memory_dedup_embedding_limit: Count = 5
    """How many near texts are looked at for one fact."""
    memory_dedup_embedding_threshold: Annotated[float, Field(ge=0, le=2)] | None = None
    """Distance below which two texts may say the same. Unset: the embedder's own."""

    memory_injection_char_budget: Annotated[int, Field(ge=100, le=1_000_000)] = 2000
    """Longest text of an injection, header and footer included."""
    memory_retrieval_count: Count = 6
    """How many facts a search gives."""

    afterword_ended_grace_sec: Seconds = 30.0
    """How long an ended conversation waits for messages that were sent apart."""
    afterword_job_deadline_sec: Seconds = 300.0
    """Time that one attempt of a job has before it is cut."""
    afterword_job_attempts: Count = 3
    """Attempts of a job before it is dead."""
    afterword_job_retry_sec: Seconds = 60.0
    """Pause before the next attempt, times the number of the attempt."""
    afterword_jobs_in_flight: Count = 64
    """Jobs that one process works on at once."""
    afterword_shutdown_sec: Seconds = 25.0
    """Time from SIGTERM to the end, for everything together."""
    afterword_drain_sec: Seconds = 12.0
    """The part of it in which work in hand may be finished; the rest is given back."""
    afterword_data_dir: Path = Field(default_factory=_data_dir)
    """Folder of the embedded database."""

    memory_port: Port = 8052
    """Port of HTTP; 0 takes a free one."""
    afterword_host: str = "127.0.0.1"
    """Address of HTTP. One that other machines reach needs `AFTERWORD_API_TOKENS`."""
    afterword_api_tokens: Secrets = ()
    """Bearer tokens with commas between: `token`, or `token:tenant`. Each reaches its own tenant alone."""
    afterword_http_body_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 8_000_000
    """Largest body of a request over HTTP."""
    log_level: Annotated[LogLevel, BeforeValidator(upper_case)] = LogLevel.INFO
    """From which level on records are written to standard error."""
    log_format: LogFormat = LogFormat.CONSOLE
    """`json` for machines, `console` for people."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, is_wrong, wish in self._conflicts():
            if is_wrong:
                raise ValueError(f"{name}: {wish}")
        return self

    def _conflicts(self) -> Iterable[tuple[str, bool, str]]:
        yield from self._kafka_conflicts()
        yield from self._model_conflicts()
        order = self.memory_pending_confidence > self.memory_min_confidence
        yield "MEMORY_PENDING_CONFIDENCE", order, "must not be above MEMORY_MIN_CONFIDENCE"
        is_long = self.afterword_drain_sec >= self.afterword_shutdown_sec
        yield "AFTERWORD_DRAIN_SEC", is_long, "must be below AFTERWORD_SHUTDOWN_SEC"
        is_open = self.afterword_host not in LOOPBACK and not self.afterword_api_tokens
        yield "AFTERWORD_HOST", is_open, "an address that others reach needs AFTERWORD_API_TOKENS"
        secrets = [token.secret.get_secret_value() for token in self.api_tokens]
        is_short = any(len(secret) < _SHORTEST_TOKEN for secret in secrets)
        yield "AFTERWORD_API_TOKENS", is_short, f"a token has {_SHORTEST_TOKEN} characters or more"
        yield "AFTERWORD_API_TOKENS", len(set(secrets)) < len(secrets), "a token is there twice"
        is_alone = self.afterword_database_direct_url is not None and self.database is None
        yield "AFTERWORD_DATABASE_DIRECT_URL", is_alone, "needs AFTERWORD_DATABASE_URL"

    def _kafka_conflicts(self) -> Iterable[tuple[str, bool, str]]:
        is_rare = self.afterword_heartbeat_ms * 3 > self.afterword_session_timeout_ms
        yield "AFTERWORD_HEARTBEAT_MS", is_rare, "must be a third of AFTERWORD_SESSION_TIMEOUT_MS or less"
        has_sasl = self.afterword_kafka_security_protocol.has_sasl
        for name, value in (
            ("MECHANISM", self.afterword_kafka_sasl_mechanism),
            ("USERNAME", self.afterword_kafka_sasl_username),
            ("PASSWORD", self.afterword_kafka_sasl_password),
        ):
            missing = has_sasl and value is None
            yield f"AFTERWORD_KAFKA_SASL_{name}", missing, "needed by AFTERWORD_KAFKA_SECURITY_PROTOCOL"
            useless = not has_sasl and value is not None
            wish = "does nothing without a SASL_… AFTERWORD_KAFKA_SECURITY_PROTOCOL"
            yield f"AFTERWORD_KAFKA_SASL_{name}", useless, wish

    def _model_conflicts(self) -> Iterable[tuple[str, bool, str]]:
        order = self.llm_provider_order or ()
        yield "LLM_PROVIDER_ORDER", len(set(order)) < len(order), "a provider is there twice"
        if ProviderKind.GENERATE in order:
            wish = "needed by LLM_PROVIDER_ORDER (generate)"
            yield "MEMORY_LLM_ENDPOINT", self.memory_llm_endpoint is None, wish
        if ProviderKind.OPENAI in order:
            wish = "needed by LLM_PROVIDER_ORDER (openai)"
            yield "OPENAI_BASE_URL", self.openai_base_url is None, wish
            yield "OPENAI_MODEL", self.openai_model is None, wish
        kind, url = self.embedder.kind, self.memory_embed_url
        yield (
            "MEMORY_EMBED_URL",
            kind is not EmbedderKind.LOCAL and url is None,
            "needed by AFTERWORD_EMBEDDER",
        )
        has_no_model = kind is EmbedderKind.OPENAI and self.embedding_model is None
        yield "EMBEDDING_MODEL", has_no_model, "needed by AFTERWORD_EMBEDDER (openai)"

    @property
    def kafka(self) -> KafkaConnection | None:
        """The broker that is set; None asks for an embedded one.

        Raises:
            OSError: a file of certificates cannot be read as what it should be.
        """
        if self.afterword_kafka is None:
            return None
        protocol, password = self.afterword_kafka_security_protocol, self.afterword_kafka_sasl_password
        files = TlsFiles(
            ca=self.afterword_kafka_ssl_cafile,
            cert=self.afterword_kafka_ssl_certfile,
            key=self.afterword_kafka_ssl_keyfile,
            key_password=self.afterword_kafka_ssl_password,
        )
        return KafkaConnection(
            bootstrap_servers=",".join(self.afterword_kafka),
            security_protocol=protocol.value,
            sasl_mechanism=self.afterword_kafka_sasl_mechanism or SaslMechanism.PLAIN,
            sasl_username=self.afterword_kafka_sasl_username,
            sasl_password=password.get_secret_value() if password else None,
            ssl_context=files.context() if protocol.has_tls else None,
        )

    @property
    def database(self) -> DatabaseConnection | None:
        """The database that is set, by its URL or by any PG…; None asks for an embedded one."""
        url = self.afterword_database_url or self._url_of_parts()
        if url is None:
            return None
        return DatabaseConnection(url=url, direct_url=self.afterword_database_direct_url or url)

    def _url_of_parts(self) -> SecretStr | None:
        named = {
            "host": self.pghost,
            "port": self.pgport,
            "database": self.pgdatabase,
            "user": self.pguser,
            "password": self.pgpassword,
            "ssl_mode": self.pgsslmode,
            "channel_binding": self.pgchannelbinding,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        return DatabaseParts(**given).url if given else None

    @property
    def providers(self) -> tuple[ModelProvider, ...]:
        """The language models to ask, in order; none means that rules read the conversations."""
        order = self.llm_provider_order
        if order is None:
            order = (ProviderKind.GENERATE,) if self.memory_llm_endpoint else ()
        return tuple(self._provider(kind) for kind in order)

    def _provider(self, kind: ProviderKind) -> ModelProvider:
        if kind is ProviderKind.OPENAI:
            endpoint, token, model = self.openai_base_url, self.openai_api_key, self.openai_model
        else:
            endpoint, token, model = self.memory_llm_endpoint, self.memory_llm_api_token, None
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

    @property
    def api_tokens(self) -> tuple[ApiToken, ...]:
        """Who may call over HTTP; empty means anybody on this machine."""
        parts = (token.get_secret_value().partition(":") for token in self.afterword_api_tokens)
        return tuple(
            ApiToken(secret=SecretStr(secret), tenant_id=tenant or "default") for secret, _, tenant in parts
        )


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Read the environment, and ``env_file`` for what is not set there.

    Raises:
        SettingsError: a value is wrong; its message is one line.
    """
    try:
        settings = Settings(_env_file=env_file)  # pyright: ignore[reportCallIssue] - an argument of the framework
    except ValidationError as exc:
        raise SettingsError("; ".join(complaints(exc))) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{env_file} cannot be read: {type(exc).__name__}") from None
    try:
        _ = settings.kafka
    except OSError as exc:
        raise SettingsError(
            f"AFTERWORD_KAFKA_SSL_…FILE: not readable as PEM ({type(exc).__name__})"
        ) from None
    return settings


def environment_with(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with ``overrides``, for a child that reads its own settings."""
    return {**os.environ, **overrides}  # noqa: TID251 - settings are read here, and passed on from here


def unknown_names() -> tuple[str, ...]:
    """Return the ``AFTERWORD_…`` variables that nothing reads: most likely misspelt."""
    known = {name.upper() for name in Settings.model_fields}
    found = (name for name in os.environ if name.startswith("AFTERWORD_"))  # noqa: TID251
    return tuple(sorted(name for name in found if name not in known and not name.startswith(_FOREIGN)))
