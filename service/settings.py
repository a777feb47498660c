"""Settings: the only place that reads the environment (docs/reference/settings.md)."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator

from domain.errors import AfterwordError
from service.connections import (
    LOOPBACK,
    ApiToken,
)
from service.database_settings import DatabaseSettings
from service.kafka_settings import KafkaSettings
from service.model_settings import ModelSettings
from service.setting_types import (
    Count,
    LogLevel,
    Port,
    Seconds,
    Secrets,
    Weight,
    complaints,
    upper_case,
)
from service.settings_group import Conflict
from telemetry.logs import LogFormat

# Of tests and benchmarks; the last two are what Kubernetes adds beside a service called "afterword".
_FOREIGN: Final = ("AFTERWORD_TEST_", "AFTERWORD_CORPORA", "AFTERWORD_SERVICE_", "AFTERWORD_PORT")
_SHORTEST_TOKEN: Final = 16


class SettingsError(AfterwordError):
    """A setting has a wrong value; the message is one line that names it and shows no value."""


def _data_dir() -> Path:
    return Path("/var/lib/afterword") if os.geteuid() == 0 else Path.home() / ".local/share/afterword"


class Settings(ModelSettings, DatabaseSettings, KafkaSettings):
    """Everything that differs between deployments; each field is read from the variable of its name."""

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
    """Workers: jobs that one process works on at once, over all lanes."""
    afterword_tenant_slots: Count | None = None
    """Jobs of one tenant that run at once over all replicas, unless `lis.tenants.slots` says otherwise;
    replayed ones have half as many of their own. Unset: three quarters of the workers of one process."""
    afterword_weight_priority: Weight = 8
    """Share of the workers that the priority lane has while other lanes have work, too."""
    afterword_weight_standard: Weight = 4
    """Share of the standard lane."""
    afterword_weight_bulk: Weight = 2
    """Share of the bulk lane."""
    afterword_weight_replay: Weight = 1
    """Share of the replay lane, which never holds more than three quarters of the workers."""
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
        for name, is_wrong, wish in self.conflicts():
            if is_wrong:
                raise ValueError(f"{name}: {wish}")
        return self

    def conflicts(self) -> Iterable[Conflict]:
        """Yield what does not fit together."""
        yield from super().conflicts()
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
