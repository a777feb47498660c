"""Parts that run side by side in one process, and how they are started, watched and stopped together."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from domain.errors import AfterwordError
from gateway.parts import ComponentState

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.05


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


class ComponentEndedError(AfterwordError):
    """A part of the service ended by itself; the process ends with it, so that whoever runs it can act."""


class Components:
    """Runs parts side by side: ready when all are, ended when one ends, stopped together."""

    def __init__(self, parts: Sequence[Component], *, budget: float) -> None:
        self._parts = parts
        self._budget = budget

    def states(self) -> dict[str, ComponentState]:
        """Return the state of every part."""
        return {part.name: part.state() for part in self._parts}

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        """Run all parts until ``stop``; call ``on_ready`` once when every one serves.

        A part that has not ended within the budget after that is cut off.

        Raises:
            ComponentEndedError: a part failed, or ended by itself; the message says which and why.
        """
        tasks = [asyncio.create_task(part.run(), name=part.name) for part in self._parts]
        telling = asyncio.create_task(self._tell(on_ready))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
            # In the order of their start: a part may take others with it.
            ended = [task for task in tasks if task.done()]
            telling.cancel()
            await self._stop(tasks)
        finally:
            for task in (telling, stopping, *tasks):
                task.cancel()
            await asyncio.gather(telling, stopping, *tasks, return_exceptions=True)
        _complain([*ended, *tasks])
        if ended and not stop.is_set():
            raise ComponentEndedError(f"{ended[0].get_name()} ended by itself")

    async def _tell(self, on_ready: Callable[[], None]) -> None:
        while not all(state.is_ready for state in self.states().values()):
            await asyncio.sleep(_LOOK_S)
        on_ready()

    async def _stop(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        for part in self._parts:
            part.stop()
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
