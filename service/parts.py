"""The parts of a process as components: consumers, relay, responder, HTTP, and background work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from consumers.keyed import KeyedConsumer
from consumers.responder import Responder
from domain.errors import BrokerUnavailableError, InfrastructureError, ReadOnlyStoreError
from gateway.parts import ComponentState
from gateway.server import HttpServer
from producers.outbox_relay import OutboxRelay
from producers.stopping import unless
from service.processes import ProcessFailedError, ServiceProcess
from service.settings import environment_with
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

_READY: Final = ComponentState(is_ready=True)
_JOINING: Final = ComponentState(is_ready=False, detail="joining its group")
_SILENT: Final = ComponentState(is_ready=False, detail="the broker does not answer")
_STALLED: Final = ComponentState(is_ready=False, detail="a partition stands still; see the log")
_STARTING: Final = ComponentState(is_ready=False, detail="starting")
_AWAY: Final = ComponentState(is_ready=False, detail="does not answer")
_NO_WRITES: Final = ComponentState(is_ready=False, detail="takes no writes")
_ASSIGNMENT_S: Final = 15.0
_LOOK_S: Final = 2.0
_LOOK_WITHIN_S: Final = 5.0
_AGAIN_S: Final = 1.0
# A database or broker that is not there yet is waited for, by that process as by this one.
_CHILD_READY_S: Final = 86_400.0


class ConsumerPart:
    """A keyed consumer."""

    def __init__(self, name: str, topic: str, consumer: KeyedConsumer) -> None:
        self.name = name
        self.topic = topic
        self.consumer = consumer

    def state(self) -> ComponentState:
        """Say whether it consumes."""
        if self.consumer.stalled:
            return _STALLED
        if not self.consumer.joined:
            return _JOINING
        return _READY if self.consumer.healthy() else _SILENT

    def stop(self) -> None:
        """Take in nothing more."""
        self.consumer.stop()

    async def run(self) -> None:
        """Consume until ``stop``."""
        await self.consumer.run()


class RelayPart:
    """The outbox relay."""

    name = "relay"

    def __init__(self, relay: OutboxRelay) -> None:
        self.relay = relay

    def state(self) -> ComponentState:
        """Say whether it turns, as the leader or behind one."""
        return (
            _READY
            if self.relay.healthy()
            else ComponentState(is_ready=False, detail="waits for the database")
        )

    def stop(self) -> None:
        """End after the turn that runs."""
        self.relay.stop()

    async def run(self) -> None:
        """Relay until ``stop``."""
        await self.relay.run()


class ResponderPart:
    """The responder to requests."""

    name = "responder"

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._stopping = asyncio.Event()
        self._is_answering = False

    def state(self) -> ComponentState:
        """Say whether requests are read."""
        return _READY if self._is_answering and self._responder.serves else _JOINING

    def stop(self) -> None:
        """Take no more requests."""
        self._stopping.set()

    async def run(self) -> None:
        """Answer until ``stop``; a broker that is away is waited for."""
        waiting = Notice(logger)
        try:
            while not self._stopping.is_set():
                try:
                    await unless(self._stopping, self._serve())
                    waiting.is_over()
                    await self._stopping.wait()
                except BrokerUnavailableError as error:
                    waiting.begins("the responder waits: %s", error)
                    await unless(self._stopping, asyncio.sleep(_AGAIN_S))
        finally:
            await self._responder.stop()

    async def _serve(self) -> None:
        await self._responder.start()
        # A replica beyond the number of partitions never gets one; it stands by and is ready all the same.
        try:
            async with asyncio.timeout(_ASSIGNMENT_S):
                await self._responder.ready()
        except TimeoutError:
            logger.info("no partition of the requests is ours")
        self._is_answering = True


class HttpPart:
    """The HTTP server."""

    name = "http"

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def state(self) -> ComponentState:
        """Say whether it listens."""
        return _READY if self._server.started.is_set() else _STARTING

    def stop(self) -> None:
        """Take no further requests."""
        self._server.stop()

    async def run(self) -> None:
        """Serve until ``stop``."""
        await self._server.serve()


class ProcessPart:
    """Roles in a process of their own, which has ``within`` seconds to end."""

    def __init__(self, roles: Sequence[str], *, within: float) -> None:
        self.name = "+".join(roles)
        self._roles = ",".join(roles)
        self._within = within
        self._stopping = asyncio.Event()
        self._process: ServiceProcess | None = None
        self._is_ready = False

    @property
    def metrics(self) -> str | None:
        """The metrics that the process told last."""
        report = self._process.report if self._process is not None else None
        return report.metrics if report is not None else None

    def state(self) -> ComponentState:
        """Say whether the process serves, by what it told last."""
        if not self._is_ready or self._process is None:
            return _STARTING
        report = self._process.report
        return _SILENT if report is not None and report.unready else _READY

    def stop(self) -> None:
        """Let the process end."""
        self._stopping.set()

    async def run(self) -> None:
        """Run the process until ``stop``; end when it ends, so that the whole is started anew together."""
        process = await ServiceProcess.start(("--roles", self._roles), environment=environment_with({}))
        self._process = process
        ending = asyncio.create_task(self._watch(process))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                ending.result()
        finally:
            self._is_ready = False
            for task in (ending, stopping):
                task.cancel()
            await process.stop(within=self._within)
            await asyncio.gather(ending, stopping, return_exceptions=True)

    async def _watch(self, process: ServiceProcess) -> None:
        await process.ready(within=_CHILD_READY_S)
        self._is_ready = True
        code = await process.wait()
        raise ProcessFailedError(f"the process of {self.name} ended with code {code}")


class Recurring:
    """Work that is done every so often, and once more at the end where that is asked for."""

    def __init__(
        self, name: str, work: Callable[[], Awaitable[None]], *, every: float, also_at_end: bool = False
    ) -> None:
        self.name = name
        self._work = work
        self._every = every
        self._also_at_end = also_at_end
        self._put_off = Notice(logger)
        self._stopping = asyncio.Event()

    def state(self) -> ComponentState:
        """Be ready: nothing waits for background work."""
        return _READY

    def stop(self) -> None:
        """End after the turn that runs."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until ``stop``; a database or broker that is away is tried again the next time."""
        while not self._stopping.is_set():
            await self._once()
            await unless(self._stopping, asyncio.sleep(self._every))
        if self._also_at_end:
            await self._once()

    async def _once(self) -> None:
        try:
            await self._work()
        except InfrastructureError as error:
            self._put_off.begins("%s is put off: %s", self.name, type(error).__name__)
        else:
            self._put_off.is_over()


class Reached:
    """Something outside that the service needs; looked at now and then, and only then known to be there.

    ``on_looked`` is told after each look whether it is waited for.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], Awaitable[None]],
        *,
        every: float = _LOOK_S,
        on_looked: Callable[[bool], None] = lambda _is_awaited: None,
    ) -> None:
        self.name = name
        self._look = look
        self._every = every
        self._on_looked = on_looked
        self._stopping = asyncio.Event()
        self._state = _STARTING

    def state(self) -> ComponentState:
        """Say whether it answered the last time."""
        return self._state

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    async def run(self) -> None:
        """Look until ``stop``."""
        while not self._stopping.is_set():
            await unless(self._stopping, self._once())
            await unless(self._stopping, asyncio.sleep(self._every))

    async def _once(self) -> None:
        found = await self._found()
        if found is not self._state:
            if found is _READY:
                logger.info("the %s is there", self.name)
            else:
                logger.warning("waiting for the %s: it %s", self.name, found.detail)
        self._state = found
        self._on_looked(found is not _READY)

    async def _found(self) -> ComponentState:
        try:
            async with asyncio.timeout(_LOOK_WITHIN_S):
                await self._look()
        except ReadOnlyStoreError:
            return _NO_WRITES
        except (InfrastructureError, TimeoutError):
            return _AWAY
        return _READY
