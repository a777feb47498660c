"""One broker for a test run: a chosen one, from Docker, Apache Kafka from Maven Central, or Tansu."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Literal

from aiokafka.admin import AIOKafkaAdminClient

from service.embedded.broker import EmbeddedBroker
from service.embedded.folders import clear_stale, prepare, temporary_folder
from tests.support.apache_kafka import ApacheKafka, JarsMissingError, fetch_jars
from tests.support.process_trees import resume_tree, suspend_tree
from tests.support.surroundings import Surroundings, docker_answers

Kind = Literal["apache", "tansu", "external", "container"]
FOLDER_PREFIX: Final = "afterword-test-kafka-"
_IMAGE: Final = "confluentinc/cp-kafka:7.9.0"


class NotRestartableError(Exception):
    """This broker or server is not ours to kill."""


class KafkaServer:
    """The broker of this test run; ``why`` says what kept it from being Apache Kafka, if anything did."""

    def __init__(
        self,
        bootstrap: str,
        kind: Kind,
        *,
        process: ApacheKafka | EmbeddedBroker | None = None,
        why: str = "",
    ) -> None:
        self.bootstrap = bootstrap
        self.kind: Kind = kind
        self.why = why
        self._process = process

    @property
    def can_restart(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """SIGKILL the broker."""
        self._own().kill()

    async def end(self) -> None:
        """End the broker in order, as a restart by hand does."""
        process = self._own()
        await (process.end() if isinstance(process, ApacheKafka) else process.stop())

    def freeze(self) -> None:
        """SIGSTOP the broker."""
        suspend_tree(self._own().pid)

    def thaw(self) -> None:
        """SIGCONT the broker."""
        resume_tree(self._own().pid)

    async def restart(self) -> None:
        """Start it again on the same port, and folder where it has one. Tansu forgets everything."""
        await self._own().start()

    async def forget(self) -> None:
        """Delete every topic, so that the next test starts from nothing."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            topics = [topic for topic in await admin.list_topics() if not topic.startswith("__")]
            if topics:
                await admin.delete_topics(topics)
            while set(topics) & set(await admin.list_topics()):
                await asyncio.sleep(0.02)
        finally:
            await admin.close()

    def _own(self) -> ApacheKafka | EmbeddedBroker:
        if self._process is None:
            raise NotRestartableError(f"the {self.kind} broker is not ours to kill")
        return self._process


@contextmanager
def running_kafka(surroundings: Surroundings) -> Generator[KafkaServer]:
    """Run the first broker of the chain that this machine can run."""
    if surroundings.kafka:
        yield KafkaServer(surroundings.kafka, "external")
    elif docker_answers():
        yield from _from_docker()
    else:
        yield from _own_process(surroundings)


def _from_docker() -> Generator[KafkaServer]:
    from testcontainers.community.kafka import KafkaContainer  # noqa: PLC0415  # its import asks for Docker

    with KafkaContainer(_IMAGE).with_kraft() as container:
        yield KafkaServer(container.get_bootstrap_server(), "container")


def _own_process(surroundings: Surroundings) -> Generator[KafkaServer]:
    asyncio.run(clear_stale(FOLDER_PREFIX))
    with temporary_folder(FOLDER_PREFIX) as folder:
        prepare(folder)
        process: ApacheKafka | EmbeddedBroker
        kind: Kind
        try:
            process, kind, why = ApacheKafka(folder, fetch_jars(surroundings.cache)), "apache", ""
        except JarsMissingError as exc:
            process, kind, why = EmbeddedBroker(folder), "tansu", str(exc)
        asyncio.run(process.start())
        try:
            yield KafkaServer(process.bootstrap, kind, process=process, why=why)
        finally:
            asyncio.run(process.stop())
