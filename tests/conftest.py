"""Fixtures of every kind of test: one broker and one database server a run, one database a test."""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from storage.migrate import migrate
from tests.support.kafka import KafkaServer, running_kafka
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.summary import SERVERS, write_servers, write_skipped
from tests.support.surroundings import Surroundings, read_surroundings

_SLOW = [HealthCheck.too_slow]
# The quick run tries the same histories each time, so that a new failure has a change for its reason.
# FOLD_PROFILE=long looks for new histories.
settings.register_profile(
    "quick", max_examples=120, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("FOLD_PROFILE", "quick"))  # noqa: TID251 - not a setting of the service


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def surroundings() -> Surroundings:
    return read_surroundings()


@pytest.fixture(scope="session")
def kafka(surroundings: Surroundings, pytestconfig: pytest.Config) -> Generator[KafkaServer]:
    """The broker of this run; topics of other tests are in it unless a test asks for `empty_kafka`."""
    with running_kafka(surroundings) as server:
        pytestconfig.stash[SERVERS]["broker"] = f"{server.kind} ({server.why})" if server.why else server.kind
        yield server


@pytest.fixture
def apache_kafka(kafka: KafkaServer) -> KafkaServer:
    """The broker, for tests of what Tansu cannot do."""
    if kafka.kind == "tansu":
        pytest.skip(f"needs Apache Kafka, the broker is Tansu ({kafka.why})")
    return kafka


@pytest.fixture
def own_kafka(kafka: KafkaServer) -> KafkaServer:
    """The broker, for tests that kill it and start it again."""
    if not kafka.can_restart:
        pytest.skip(f"the broker ({kafka.kind}) is not ours to kill")
    return kafka


@pytest.fixture
async def empty_kafka(kafka: KafkaServer) -> KafkaServer:
    """The broker without a topic in it."""
    await kafka.forget()
    return kafka


@pytest.fixture(scope="session")
def postgres(surroundings: Surroundings, pytestconfig: pytest.Config) -> Generator[PostgresServer]:
    """The database server of this run."""
    with running_postgres(surroundings) as server:
        pytestconfig.stash[SERVERS]["database"] = server.kind
        yield server


@pytest.fixture
def own_postgres(postgres: PostgresServer) -> PostgresServer:
    """The database server, for tests that kill it and start it again."""
    if not postgres.can_restart:
        pytest.skip(f"the database server ({postgres.kind}) is not ours to kill")
    return postgres


@pytest.fixture
def database_url(postgres: PostgresServer) -> Generator[str]:
    """The address of an empty database that this test alone uses."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def module_database_url(postgres: PostgresServer) -> Generator[str]:
    """The address of an empty database that the tests of one module share."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def migrated_template(postgres: PostgresServer) -> Generator[str]:
    """A migrated database that nobody connects to; others are copied from it."""
    url = postgres.create_database()
    asyncio.run(migrate(url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def migrated_url(postgres: PostgresServer, migrated_template: str) -> Generator[str]:
    """The address of a migrated database that this test alone uses."""
    url = postgres.create_database(template=migrated_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test's topics have, for AFTERWORD_TOPIC_PREFIX."""
    return f"test-{uuid4().hex[:8]}."


@pytest.fixture(scope="session")
def corpora(surroundings: Surroundings) -> Path:
    """The folder of real conversations; its tests are skipped where it is missing."""
    if not surroundings.corpora.is_dir():
        pytest.skip("the folder of AFTERWORD_CORPORA is missing")
    return surroundings.corpora


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SERVERS] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    write_servers(terminalreporter, config.stash[SERVERS])
    write_skipped(terminalreporter)
