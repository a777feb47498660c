import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from service.connections import DatabaseParts, EmbedderKind, ProviderKind
from service.setting_types import ModelFallback
from service.settings import Settings, SettingsError, environment_with, load_settings, unknown_names
from service.settings_reference import settings_page

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
OTHER_NAMES = {"LLM_ENDPOINT", "LLM_API_TOKEN", "LLM_TIMEOUT_SEC", "EMBED_URL", "EMBEDDING_TIMEOUT_SEC"}
SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - to look for it where it must not be

Load = Callable[..., Settings]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """Load settings from the given variables alone."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):  # noqa: TID251 - what the machine has set must not count
        if (
            name.upper().lower() in Settings.model_fields
            or name in OTHER_NAMES
            or name.startswith("AFTERWORD_")
        ):
            monkeypatch.delenv(name)

    def loaded(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return load_settings()

    return loaded


def test_with_nothing_set_everything_is_embedded_and_nothing_leaves_the_machine(load: Load) -> None:
    settings = load()

    assert settings.kafka is None
    assert settings.database is None
    assert settings.providers == ()
    assert settings.embedder.kind is EmbedderKind.LOCAL
    assert settings.embedder.url is None
    assert settings.afterword_host == "127.0.0.1"
    # Two hosts have a name of their own: whoever puts their provider into the order has named them.
    assert {
        name
        for name, field in Settings.model_fields.items()
        if str(field.default).startswith(("http://", "https://"))
    } == {"anthropic_base_url", "gemini_base_url"}


def test_defaults_are_those_of_the_contract(load: Load) -> None:
    settings = load()

    assert settings.memory_llm_timeout_sec == 30
    assert settings.memory_llm_temperature == 0.1
    assert settings.memory_llm_max_tokens == 1024
    assert settings.memory_consolidation_temperature == 0.1
    assert settings.memory_consolidation_max_tokens == 256
    assert settings.memory_embedding_timeout_sec == 10
    assert settings.memory_max_transcript_chars == 12_000
    assert settings.memory_min_confidence == 0.65
    assert settings.memory_pending_confidence == 0.45
    assert settings.memory_injection_char_budget == 2000
    assert settings.memory_dedup_embedding_limit == 5
    assert settings.memory_dedup_embedding_threshold is None
    assert settings.memory_retrieval_count == 6
    assert settings.memory_model_fallback is ModelFallback.RULES
    assert settings.embedding_required
    assert settings.db_pool_max == 10
    assert settings.memory_port == 8052
    assert settings.afterword_partitions == 24
    assert settings.afterword_reply_topics == ("*.replies", "*.replies.*")
    assert settings.afterword_ended_grace_sec == 30
    assert (settings.afterword_shutdown_sec, settings.afterword_drain_sec) == (25, 12)


def test_a_broker_that_is_set_replaces_the_embedded_one(load: Load) -> None:
    kafka = load(AFTERWORD_KAFKA="one:9092, [::1]:9093").kafka

    assert kafka is not None
    assert kafka.bootstrap_servers == "one:9092,[::1]:9093"
    assert kafka.security_protocol == "PLAINTEXT"
    assert kafka.ssl_context is None


def test_a_broker_with_name_and_password_over_tls(load: Load) -> None:
    settings = load(
        AFTERWORD_KAFKA="one:9093",
        AFTERWORD_KAFKA_SECURITY_PROTOCOL="sasl_ssl",
        AFTERWORD_KAFKA_SASL_MECHANISM="scram-sha-512",
        AFTERWORD_KAFKA_SASL_USERNAME="afterword",
        AFTERWORD_KAFKA_SASL_PASSWORD=SECRET,
    )

    kafka = settings.kafka
    assert kafka is not None
    assert (kafka.security_protocol, kafka.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert kafka.sasl_password == SECRET
    assert kafka.ssl_context is not None
    assert kafka.ssl_context.check_hostname
    assert SECRET not in repr(settings) + repr(kafka)


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"AFTERWORD_DATABASE_URL": "postgresql://u:p@h/d", "PGHOST": "x"}, "postgresql://u:p@h/d"),
        ({"PGHOST": "db.internal"}, "postgresql://lis@db.internal:5432/lis?sslmode=require"),
        ({"PGUSER": "me", "PGPORT": "6432"}, "postgresql://me@localhost:6432/lis"),
        (
            {
                "PGHOST": "h",
                "PGPASSWORD": "a@b/c:d",
                "PGSSLMODE": "verify-full",
                "PGCHANNELBINDING": "require",
            },
            "postgresql://lis:a%40b%2Fc%3Ad@h:5432/lis?sslmode=verify-full&channel_binding=require",
        ),
        ({"PGHOST": "/run/postgresql"}, "postgresql://lis@%2Frun%2Fpostgresql:5432/lis"),
    ],
)
def test_a_database_is_named_by_its_url_or_by_the_variables_of_libpq(
    load: Load, variables: dict[str, str], url: str
) -> None:
    database = load(**variables).database

    assert database is not None
    assert database.url.get_secret_value() == url
    assert database.direct_url == database.url


def test_a_pooler_is_passed_by_where_a_direct_url_is_set(load: Load) -> None:
    database = load(
        AFTERWORD_DATABASE_URL="postgresql://pooler/d", AFTERWORD_DATABASE_DIRECT_URL="postgresql://server/d"
    ).database

    assert database is not None
    assert database.direct_url.get_secret_value() == "postgresql://server/d"


def test_an_endpoint_alone_configures_the_plain_model(load: Load) -> None:
    settings = load(LLM_ENDPOINT="http://llm/api/generate/", MEMORY_LLM_API_TOKEN=SECRET)

    (provider,) = settings.providers
    assert provider.kind is ProviderKind.GENERATE
    assert provider.endpoint == "http://llm/api/generate"
    assert SECRET not in repr(settings) + repr(provider)


def test_our_own_name_of_a_setting_is_read_before_the_shared_one(load: Load) -> None:
    settings = load(LLM_ENDPOINT="http://shared", MEMORY_LLM_ENDPOINT="http://ours", LLM_TIMEOUT_SEC="7")

    assert settings.memory_llm_endpoint == "http://ours"
    assert settings.memory_llm_timeout_sec == 7


def test_models_are_asked_in_the_order_that_is_set(load: Load) -> None:
    settings = load(
        LLM_PROVIDER_ORDER="openai, generate",
        OPENAI_BASE_URL="http://vllm:8000/v1",
        OPENAI_MODEL="m",
        MEMORY_LLM_ENDPOINT="http://llm",
    )

    assert [provider.kind for provider in settings.providers] == [ProviderKind.OPENAI, ProviderKind.GENERATE]
    assert settings.providers[0].model == "m"


def test_a_key_of_a_model_server_that_lies_about_is_not_used(load: Load) -> None:
    assert load(OPENAI_API_KEY=SECRET, OPENAI_BASE_URL="https://api.example.com/v1").providers == ()


def test_an_embeddings_service_is_used_when_it_has_a_url(load: Load) -> None:
    embedder = load(EMBED_URL="http://tei:8016").embedder

    assert (embedder.kind, embedder.url) == (EmbedderKind.TEI, "http://tei:8016")


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"MEMORY_PORT": "many"}, "MEMORY_PORT"),
        ({"MEMORY_PORT": "tcp://10.0.0.1:8052"}, "MEMORY_PORT"),
        ({"AFTERWORD_KAFKA": "localhost"}, "AFTERWORD_KAFKA"),
        ({"AFTERWORD_KAFKA_SECURITY_PROTOCOL": "TLS"}, "AFTERWORD_KAFKA_SECURITY_PROTOCOL"),
        ({"AFTERWORD_KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "AFTERWORD_KAFKA_SASL_MECHANISM"),
        ({"AFTERWORD_KAFKA_SASL_PASSWORD": SECRET}, "AFTERWORD_KAFKA_SASL_PASSWORD"),
        ({"AFTERWORD_KAFKA_SSL_CAFILE": "/nowhere/ca.pem"}, "AFTERWORD_KAFKA_SSL_CAFILE"),
        ({"AFTERWORD_DATABASE_URL": f"mysql://u:{SECRET}@h/d"}, "AFTERWORD_DATABASE_URL"),
        ({"AFTERWORD_DATABASE_DIRECT_URL": "postgresql://h/d"}, "AFTERWORD_DATABASE_DIRECT_URL"),
        ({"LLM_PROVIDER_ORDER": "openai"}, "OPENAI_BASE_URL"),
        ({"LLM_PROVIDER_ORDER": "generate"}, "MEMORY_LLM_ENDPOINT"),
        ({"LLM_PROVIDER_ORDER": "anthropic", "ANTHROPIC_API_KEY": "k"}, "ANTHROPIC_MODEL"),
        ({"LLM_PROVIDER_ORDER": "anthropic", "ANTHROPIC_MODEL": "m"}, "ANTHROPIC_API_KEY"),
        ({"LLM_PROVIDER_ORDER": "gemini", "GEMINI_MODEL": "m"}, "GEMINI_API_KEY"),
        ({"LLM_PROVIDER_ORDER": "oracle"}, "LLM_PROVIDER_ORDER"),
        ({"LLM_ENDPOINT": SECRET}, "MEMORY_LLM_ENDPOINT"),
        ({"MEMORY_MIN_CONFIDENCE": "1.5"}, "MEMORY_MIN_CONFIDENCE"),
        ({"MEMORY_MIN_CONFIDENCE": "0.3"}, "MEMORY_PENDING_CONFIDENCE"),
        ({"AFTERWORD_EMBEDDER": "tei"}, "MEMORY_EMBED_URL"),
        ({"AFTERWORD_DRAIN_SEC": "40"}, "AFTERWORD_DRAIN_SEC"),
        ({"AFTERWORD_HOST": "0.0.0.0"}, "AFTERWORD_HOST"),  # noqa: S104 - it is refused
        ({"AFTERWORD_API_TOKENS": "short"}, "AFTERWORD_API_TOKENS"),
        ({"AFTERWORD_API_TOKENS": f"{SECRET}:a,{SECRET}:b"}, "AFTERWORD_API_TOKENS"),
        ({"AFTERWORD_SESSION_TIMEOUT_MS": "2000"}, "AFTERWORD_HEARTBEAT_MS"),
        ({"AFTERWORD_INSTANCE_ID": "a b"}, "AFTERWORD_INSTANCE_ID"),
        ({"LOG_FORMAT": "yaml"}, "LOG_FORMAT"),
        ({"MEMORY_MODEL_FALLBACK": "none"}, "MEMORY_MODEL_FALLBACK"),
    ],
)
def test_a_wrong_value_stops_the_start_with_one_line_that_names_it(
    load: Load, variables: dict[str, str], name: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**variables)

    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.__cause__ is None


def test_a_file_that_holds_no_certificate_stops_the_start(load: Load) -> None:
    Path("ca.pem").write_text("no certificate")

    with pytest.raises(SettingsError, match=r"^AFTERWORD_KAFKA_SSL_…FILE: "):
        load(
            AFTERWORD_KAFKA="one:9093",
            AFTERWORD_KAFKA_SECURITY_PROTOCOL="SSL",
            AFTERWORD_KAFKA_SSL_CAFILE="ca.pem",
        )


def test_several_wrong_values_are_named_in_the_same_line(load: Load) -> None:
    with pytest.raises(SettingsError, match=r"MEMORY_PORT: .*; LOG_LEVEL: "):
        load(MEMORY_PORT="x", LOG_LEVEL="loud")


def test_an_empty_value_counts_as_unset(load: Load) -> None:
    settings = load(AFTERWORD_KAFKA="", MEMORY_PORT="", PGHOST="")

    assert settings.kafka is None
    assert settings.database is None
    assert settings.memory_port == 8052


def test_a_file_is_read_for_what_the_environment_does_not_say(load: Load) -> None:
    Path(".env").write_text("MEMORY_PORT=1111\nDB_POOL_MAX=3\nSOMETHING_ELSE=1\n")

    settings = load(MEMORY_PORT="2222")

    assert settings.memory_port == 2222
    assert settings.db_pool_max == 3


def test_a_file_that_is_no_text_is_an_error_of_one_line(load: Load) -> None:
    Path(".env").write_bytes(b"MEMORY_PORT=\xff\xfe\n")

    with pytest.raises(SettingsError, match=r"^\.env cannot be read: UnicodeDecodeError$"):
        load()


def test_tokens_reach_their_own_tenant_and_open_other_addresses(load: Load) -> None:
    settings = load(AFTERWORD_API_TOKENS=f"{SECRET},other-{SECRET}:acme", AFTERWORD_HOST="::")

    assert [(token.secret.get_secret_value(), token.tenant_id) for token in settings.api_tokens] == [
        (SECRET, "default"),
        (f"other-{SECRET}", "acme"),
    ]
    assert SECRET not in repr(settings) + repr(settings.api_tokens)


def test_a_child_gets_our_environment_and_what_is_set_for_it(load: Load) -> None:
    load(LOG_LEVEL="ERROR", MEMORY_PORT="1111")

    environment = environment_with({"MEMORY_PORT": "0"})

    assert (environment["LOG_LEVEL"], environment["MEMORY_PORT"]) == ("ERROR", "0")


def test_a_misspelt_name_is_found_and_those_of_others_are_not(load: Load) -> None:
    load(
        AFTERWORD_DATABSE_URL="postgresql://h/d",
        AFTERWORD_TEST_KAFKA="x:1",
        AFTERWORD_CORPORA="/data",
        AFTERWORD_SERVICE_HOST="10.0.0.1",
    )

    assert unknown_names() == ("AFTERWORD_DATABSE_URL",)


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_name_and_password_make_a_url_of_one_user_and_one_host(user: str, password: str) -> None:
    try:
        (user + password).encode()
    except UnicodeEncodeError:
        return
    url = DatabaseParts(host="h", user=user, password=SecretStr(password)).url.get_secret_value()

    assert re.fullmatch(r"postgresql://[\w.~%-]+:[\w.~%-]+@h:5432/lis\?sslmode=require", url, re.ASCII)


def test_the_page_of_settings_is_up_to_date() -> None:
    assert REFERENCE.read_text() == settings_page()


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
