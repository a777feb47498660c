"""Settings of the broker (docs/reference/settings.md, "Kafka")."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator, Field, FilePath, SecretStr

from producers.connection import KafkaConnection
from service.connections import SaslMechanism, SecurityProtocol, TlsFiles
from service.setting_types import Count, Listed, Name, Servers, upper_case
from service.settings_group import Conflict, SettingsGroup


class KafkaSettings(SettingsGroup):
    """How the broker is reached, and how topics are made and read."""

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

    def conflicts(self) -> Iterable[Conflict]:
        """Yield what of the broker does not fit together."""
        yield from super().conflicts()
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
