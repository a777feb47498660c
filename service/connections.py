"""What settings say about the things outside: broker, database, models, embedder and who may call."""

import ssl
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from pydantic import SecretStr

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class SecurityProtocol(StrEnum):
    """How the broker is spoken to."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_sasl(self) -> bool:
        """Whether the broker asks who is there."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def has_tls(self) -> bool:
        """Whether the line is encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


class SaslMechanism(StrEnum):
    """How a name and a password are shown to the broker."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Certificates for the line to the broker; without ``ca`` those of the system count."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    key_password: SecretStr | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context that checks the broker's certificate and name.

        Raises:
            OSError: a file cannot be read as what it should be (``ssl.SSLError`` is one).
        """
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            password = self.key_password.get_secret_value() if self.key_password else ""
            context.load_cert_chain(self.cert, self.key, password)
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConnection:
    """A database that is not ours to start; ``direct_url`` goes past a pooler."""

    url: SecretStr
    direct_url: SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseParts:
    """A database named by libpq's variables, with the defaults of the original service."""

    host: str = "localhost"
    port: int = 5432
    database: str = "lis"
    user: str = "lis"
    password: SecretStr | None = None
    ssl_mode: str | None = None
    channel_binding: str | None = None

    @property
    def url(self) -> SecretStr:
        """The URL of the database; TLS is required unless the host is this machine or a mode is set."""
        is_here = self.host in LOOPBACK or self.host.startswith("/")
        mode = self.ssl_mode or (None if is_here else "require")
        options = {"sslmode": mode, "channel_binding": self.channel_binding}
        query = urlencode({name: value for name, value in options.items() if value})
        secret = f":{quote(self.password.get_secret_value(), safe='')}" if self.password else ""
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        place = f"{quote(self.user, safe='')}{secret}@{host}:{self.port}/{quote(self.database, safe='')}"
        return SecretStr(f"postgresql://{place}{'?' if query else ''}{query}")


class ProviderKind(StrEnum):
    """The wire formats of language models."""

    GENERATE = "generate"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """One language model: its wire format and where it answers."""

    kind: ProviderKind
    endpoint: str
    api_token: SecretStr | None
    model: str | None


class EmbedderKind(StrEnum):
    """Where vectors come from."""

    LOCAL = "local"
    TEI = "tei"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChoice:
    """The embedder to use; ``url`` is None for the one in process."""

    kind: EmbedderKind
    url: str | None
    api_token: SecretStr | None
    model: str | None
    dimensions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A bearer token and the only tenant that it reaches."""

    secret: SecretStr
    tenant_id: str
