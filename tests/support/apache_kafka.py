"""Apache Kafka as one process of ours: one node, on loopback, its jars from Maven Central."""

import asyncio
import base64
import fcntl
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Final

from service.embedded.broker import answers
from service.embedded.children import Child, Program, free_port, run_to_end, start_child
from tests.support.surroundings import java_works, maven_works

VERSION: Final = "4.3.1"
_READY_S: Final = 60.0
_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>afterword</groupId><artifactId>test-broker</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version></dependency>
</dependencies></project>
"""
_LOG4J: Final = """Configuration:
  Appenders:
    Console: {name: STDOUT, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDOUT}]}
"""
_PROPERTIES: Final = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=6
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
log.cleaner.backoff.ms=200
"""


class JarsMissingError(Exception):
    """Apache Kafka cannot run on this machine; the message says why."""


def fetch_jars(cache: Path) -> Path:
    """Return the folder of Kafka's jars, resolved once; safe when several runs do it at once."""
    if not java_works():
        raise JarsMissingError("no Java")
    target = cache / f"afterword-kafka-{VERSION}"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _resolve(target)
    return target


def _resolve(target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None or not maven_works():
        raise JarsMissingError("no Maven")
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        (scratch / "pom.xml").write_text(_POM)
        (scratch / "log4j2.yaml").write_text(_LOG4J)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={scratch}/libs"]
        command = [maven, "-q", "-B", "-f", str(scratch / "pom.xml"), *goal]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise JarsMissingError(f"Maven could not resolve Kafka's jars: {result.stdout[-300:].strip()}")
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class ApacheKafka:
    """A broker that keeps its port and its records over `kill` and `start`."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self._folder = folder
        self._jars = jars
        self._properties = folder / "server.properties"
        self._log = folder / "kafka.log"
        self._port = 0
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    async def start(self) -> None:
        """Format the folder at the first start; return once the broker answers."""
        fresh = not self._properties.exists()
        for _ in range(5 if fresh else 1):
            if fresh:
                await self._format()
            if await self._serves():
                return
        raise RuntimeError(f"Kafka did not start:\n{self._child.output_tail() if self._child else ''}")

    async def stop(self) -> None:
        # Its records are for one test run: nothing is worth an orderly end.
        if self._child is not None:
            self._child.kill()

    async def end(self) -> None:
        """End it in order: SIGTERM, and wait."""
        if self._child is not None:
            await self._child.stop(bound_s=30.0)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    async def _serves(self) -> bool:
        child = start_child(self._program("kafka", "kafka.Kafka", str(self._properties)))
        self._child = child
        try:
            async with asyncio.timeout(_READY_S):
                while child.returncode is None and not await answers(self._port):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            child.kill()
        return child.returncode is None

    async def _format(self) -> None:
        shutil.rmtree(self._folder / "data", ignore_errors=True)
        self._port, controller = free_port(), free_port()
        self._properties.write_text(
            _PROPERTIES.format(port=self._port, controller=controller, data=self._folder / "data")
        )
        # One that begins with a hyphen would be read as an option.
        cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        tool = (
            "kafka.tools.StorageTool",
            "format",
            "--standalone",
            "-t",
            cluster,
            "-c",
            str(self._properties),
        )
        await run_to_end(self._program("kafka-storage", *tool))

    def _program(self, name: str, *arguments: str) -> Program:
        java = shutil.which("java")
        if java is None:
            raise JarsMissingError("no Java")
        options = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
        return Program(
            name=name,
            command=(
                *(java, *options, "-cp", f"{self._jars}/libs/*"),
                *(f"-Dlog4j2.configurationFile={self._jars}/log4j2.yaml", *arguments),
            ),
            output=self._log,
            cwd=self._folder,
            stdin=Path(os.devnull),
        )
