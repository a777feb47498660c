"""``up`` and ``demo``: the service with an embedded part for everything that is not set."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from producers.client import MemoryClient
from producers.connection import KafkaConnection
from producers.stopping import unless
from service.demo.play import Demo
from service.embedded.errors import EmbeddedError
from service.embedded.folders import clear_stale, temporary_folder
from service.embedded.stack import EmbeddedStack
from service.processes import ProcessFailedError, ServiceProcess
from service.settings import Settings, environment_with

_START_S: Final = 90.0
# The embedded broker knows no idempotent producer and no static members, a waiting fetch does not wake on new
# records, and a first join takes half the session's time-out.
_FOR_EMBEDDED_BROKER: Final = {
    "AFTERWORD_KAFKA_IDEMPOTENCE": "false",
    "AFTERWORD_SESSION_TIMEOUT_MS": "2000",
    "AFTERWORD_HEARTBEAT_MS": "500",
    "AFTERWORD_FETCH_WAIT_MS": "3",
    "AFTERWORD_PARTITIONS": "6",
    "AFTERWORD_REPLICATION": "1",
    "AFTERWORD_INSTANCE_ID": "",
}
_KEPT: Final = "The database is kept in {}."
_NOT_KEPT: Final = (
    "The embedded broker keeps no messages: what was published and not yet taken in is gone when it stops."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The service that runs, and where its broker and its HTTP are."""

    process: ServiceProcess
    broker: KafkaConnection
    topic_prefix: str
    stack: EmbeddedStack | None


async def stay_up(settings: Settings, stop: asyncio.Event, console: Console) -> None:
    """Run the service until ``stop``; say where everything is.

    Raises:
        EmbeddedError: an embedded part cannot start, or ended by itself.
        ProcessFailedError: the service ended by itself, or was interrupted before it was ready.
    """
    console.print("Starting …")
    async with _running(settings, settings.afterword_data_dir, stop) as running:
        console.print(f"AFTERWORD_KAFKA={running.broker.bootstrap_servers}", markup=False)
        console.print(f"HTTP at http://{settings.afterword_host}:{settings.memory_port}/docs", markup=False)
        if settings.database is None:
            console.print(_KEPT.format(settings.afterword_data_dir), markup=False)
        if settings.kafka is None:
            console.print(_NOT_KEPT, markup=False)
        console.print("ready; Ctrl-C stops it.")
        await _until(stop, running)
        console.print("Stopping …")


async def play_demo(settings: Settings, stop: asyncio.Event, console: Console) -> None:
    """Play the demonstration on a stack of its own, and leave nothing behind.

    Raises:
        DemoFailedError: something was not as promised.
        EmbeddedError: an embedded part cannot start, or ended by itself.
        ProcessFailedError: the service ended by itself, or was interrupted.
    """
    await clear_stale()
    with (
        temporary_folder() as folder,
        console.status("Starting a broker, a database and the service …") as status,
    ):
        # Port 0: a demonstration must not be in the way of a service that runs here.
        async with _running(settings, folder, stop, MEMORY_PORT="0", LOG_LEVEL="WARNING") as running:
            status.stop()
            await _play(running, stop, console)
    console.print("\nDone; everything that was started has been stopped and removed.")


async def _play(running: Running, stop: asyncio.Event, console: Console) -> None:
    async with MemoryClient(running.broker, topic_prefix=running.topic_prefix) as memory:
        playing = asyncio.create_task(Demo(memory, console).play())
        ending = asyncio.create_task(_until(stop, running))
        try:
            await asyncio.wait({playing, ending}, return_when=asyncio.FIRST_COMPLETED)
            if playing.done():
                return playing.result()
            ending.result()
            raise ProcessFailedError("interrupted")
        finally:
            for task in (playing, ending):
                task.cancel()
            await asyncio.gather(playing, ending, return_exceptions=True)


@asynccontextmanager
async def _running(
    settings: Settings, folder: Path, stop: asyncio.Event, **overrides: str
) -> AsyncGenerator[Running]:
    wants = {"postgres": settings.database is None, "broker": settings.kafka is None}
    stack = EmbeddedStack(folder, **wants) if any(wants.values()) else None
    if stack is None:
        async with _service(settings, None, stop, overrides) as running:
            yield running
        return
    async with stack, _service(settings, stack, stop, overrides) as running:
        yield running


@asynccontextmanager
async def _service(
    settings: Settings, stack: EmbeddedStack | None, stop: asyncio.Event, overrides: dict[str, str]
) -> AsyncGenerator[Running]:
    broker = settings.kafka
    environment = dict(overrides)
    if stack is not None and settings.database is None:
        environment["AFTERWORD_DATABASE_URL"] = stack.database_url
    if broker is None:
        if stack is None:
            raise EmbeddedError("there is no broker")
        broker = KafkaConnection(bootstrap_servers=stack.bootstrap)
        environment |= {"AFTERWORD_KAFKA": stack.bootstrap, **_FOR_EMBEDDED_BROKER}
    process = await ServiceProcess.start((), environment=environment_with(environment))
    try:
        if not await unless(stop, process.ready(within=_START_S)):
            raise ProcessFailedError("stopped before the service was ready")
        yield Running(
            process=process, broker=broker, topic_prefix=settings.afterword_topic_prefix, stack=stack
        )
    finally:
        await process.stop(within=settings.afterword_shutdown_sec + 5)


async def _until(stop: asyncio.Event, running: Running) -> None:
    """Return on ``stop``; raise when the service or an embedded part ends by itself."""
    waits: set[asyncio.Task[object]] = {
        asyncio.create_task(stop.wait()),
        asyncio.create_task(running.process.wait()),
    }
    if running.stack is not None:
        waits.add(asyncio.create_task(running.stack.wait()))
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()
        if not stop.is_set():
            raise ProcessFailedError("the service ended by itself; its log says why")
    finally:
        for waiting in waits:
            waiting.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
