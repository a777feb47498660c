"""The kinds of values that settings have."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import NoDecode

from service.connections import ProviderKind

_MOST_NAMED: Final = 5


class ModelFallback(StrEnum):
    """What happens to a window when no model can be reached."""

    RULES = "rules"
    WAIT = "wait"


class LogLevel(StrEnum):
    """From which level on records are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


def listed(value: Any) -> Any:
    """Split a text at its commas."""
    return (
        tuple(part for part in map(str.strip, value.split(",")) if part) if isinstance(value, str) else value
    )


def upper_case(value: Any) -> Any:
    """Return a text in capitals."""
    return value.upper() if isinstance(value, str) else value


def _http(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("expected a URL that starts with http:// or https://")
    return value.rstrip("/")


def _postgres(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("expected a URL that starts with postgresql://")
    return value


def _servers(value: tuple[str, ...]) -> tuple[str, ...]:
    for server in value:
        host, _, port = server.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError("expected host:port, or several of them with commas between")
    return value


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed)]
Servers = Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed), AfterValidator(_servers)]
Kinds = Annotated[tuple[ProviderKind, ...], NoDecode, BeforeValidator(listed)]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(listed)]
HttpUrl = Annotated[str, AfterValidator(_http)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_postgres)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Weight = Annotated[int, Field(ge=1, le=1_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,150}$")]


def also(default: Any, *names: str) -> Any:
    """Read a field from the first of ``names`` that is set."""
    return Field(default=default, validation_alias=AliasChoices(*names))


def complaints(error: ValidationError) -> list[str]:
    """Return a phrase a fault: the setting and what was expected, never the value."""
    lines: list[str] = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False):
        message = fault["msg"].removeprefix("Value error, ").replace("\n", " ")
        name = str(fault["loc"][0]).upper() if fault["loc"] else ""
        lines.append(f"{name}: {message}" if name else message)
    unique = list(dict.fromkeys(lines))
    return [*unique[:_MOST_NAMED], *(["and more"] if len(unique) > _MOST_NAMED else [])]
