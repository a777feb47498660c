"""The servers of a test run can be trusted: they come back after a kill, and databases are apart."""

import asyncio

import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


async def test_every_test_gets_a_migrated_database_of_its_own(
    postgres: PostgresServer, migrated_template: str, migrated_url: str
) -> None:
    other = postgres.create_database(template=migrated_template)
    execute(migrated_url, "CREATE TABLE only_here ()")

    execute(other, "SELECT version FROM lis.schema_migrations")
    with pytest.raises(psycopg.errors.UndefinedTable):
        execute(other, "SELECT 1 FROM only_here")
    postgres.drop_database(other)


async def test_committed_rows_survive_a_kill_of_the_database(
    own_postgres: PostgresServer, database_url: str
) -> None:
    execute(database_url, "CREATE TABLE kept AS SELECT 1 AS n")

    own_postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        execute(database_url, "SELECT n FROM kept")
    await own_postgres.restart()

    execute(database_url, "SELECT n FROM kept")


@pytest.mark.usefixtures("apache_kafka")
async def test_acknowledged_records_survive_a_kill_of_the_broker(
    own_kafka: KafkaServer, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}kept"
    async with AIOKafkaProducer(bootstrap_servers=own_kafka.bootstrap, acks="all") as producer:
        await producer.send_and_wait(topic, b"kept")

    own_kafka.kill()
    await own_kafka.restart()

    consumer = AIOKafkaConsumer(topic, bootstrap_servers=own_kafka.bootstrap, auto_offset_reset="earliest")
    async with consumer, asyncio.timeout(20):
        record = await consumer.getone()
    assert record.value == b"kept"


async def test_emptied_broker_gives_a_topic_its_first_offset_again(empty_kafka: KafkaServer) -> None:
    for _ in range(2):
        async with AIOKafkaProducer(
            bootstrap_servers=empty_kafka.bootstrap, enable_idempotence=False
        ) as producer:
            sent = await producer.send_and_wait("again", b"hello", partition=0)
        await empty_kafka.forget()

        assert sent.offset == 0
