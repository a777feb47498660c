"""Parts that run side by side in one process, and how they are started, watched and stopped together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from domain.errors import AfterwordError
from gateway.parts import ComponentState

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.05
_STARTING: Final = ComponentState(is_ready=False, detail="starting")


class Component(Protocol):
    """A part of the service with a life of its own."""

    @property
    def name(self) -> str:
        """What ``/ready`` calls it."""
        ...

    def state(self) -> ComponentState:
        """Say whether it can do its work now."""
        ...

    def stop(self) -> None:
        """Ask it to finish; ``run`` returns soon after."""
        ...

    async def run(self) -> None:
        """Work until ``stop``."""
        ...


Later = Callable[[], Awaitable[Sequence[Component]]]


class ComponentEndedError(AfterwordError):
    """A part of the service ended by itself; the process ends with it, so that whoever runs it can act."""


class Components:
    """Runs parts side by side: ready when all are, ended when one ends, stopped together.

    ``later`` returns the parts that can be made only once something outside is there;
    ``parts`` run meanwhile.
    """

    def __init__(self, parts: Sequence[Component], *, budget: float, later: Later | None = None) -> None:
        self._parts = list(parts)
        self._budget = budget
        self._later = later

    def states(self) -> dict[str, ComponentState]:
        """Return the state of every part, and that others are still to come."""
        coming = {} if self._later is None else {"service": _STARTING}
        return {**coming, **{part.name: part.state() for part in self._parts}}

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        """Run all parts until ``stop``; call ``on_ready`` once when every one serves.

        A part that has not ended within the budget after that is cut off.

        Raises:
            ComponentEndedError: a part failed, or ended by itself; the message says which and why.
            AfterwordError: what was to come later is refused; it is what ``later`` raised.
        """
        tasks = [asyncio.create_task(part.run(), name=part.name) for part in self._parts]
        telling = asyncio.create_task(self._tell(on_ready))
        stopping = asyncio.create_task(stop.wait())
        coming = asyncio.create_task(self._add_later(tasks))
        ended: list[asyncio.Task[None]] = []
        try:
            waiting: set[asyncio.Task[Any]] = {stopping, coming}
            while not ended and not stop.is_set():
                await asyncio.wait({*tasks, *waiting}, return_when=asyncio.FIRST_COMPLETED)
                # In the order of their start: a part may take others with it.
                ended = [task for task in tasks if task.done()]
                if coming in waiting and coming.done():
                    waiting.remove(coming)
                    coming.result()
        finally:
            telling.cancel()
            coming.cancel()
            await self._stop(tasks)
            for task in (telling, stopping, coming, *tasks):
                task.cancel()
            await asyncio.gather(telling, stopping, coming, *tasks, return_exceptions=True)
        _complain([*ended, *tasks])
        if ended and not stop.is_set():
            raise ComponentEndedError(f"{ended[0].get_name()} ended by itself")

    async def _add_later(self, tasks: list["asyncio.Task[None]"]) -> None:
        if self._later is None:
            return
        parts = await self._later()
        self._parts += parts
        tasks += [asyncio.create_task(part.run(), name=part.name) for part in parts]
        self._later = None

    async def _tell(self, on_ready: Callable[[], None]) -> None:
        while not all(state.is_ready for state in self.states().values()):
            await asyncio.sleep(_LOOK_S)
        on_ready()

    async def _stop(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        for part in self._parts:
            part.stop()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._budget)
        for task in late:
            logger.error("%s did not end in time and is cut off", task.get_name())


def _complain(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Raise for the first of ``tasks`` that failed.

    Raises:
        ComponentEndedError: one did; only what our own errors say is repeated.
    """
    for task in tasks:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)
            why = str(error) if isinstance(error, AfterwordError | OSError) else type(error).__name__
            raise ComponentEndedError(f"{task.get_name()} failed: {why}") from error
