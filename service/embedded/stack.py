"""The embedded database and broker together, for one folder and one process."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from service.embedded.broker import EmbeddedBroker
from service.embedded.errors import EmbeddedError
from service.embedded.folders import held, prepare
from service.embedded.postgres import EmbeddedPostgres


class EmbeddedStack:
    """Run PostgreSQL, the broker, or both, for as long as the ``async with`` block lasts.

    Enter it on the main thread. The database keeps its data in ``folder``, the broker keeps nothing.
    """

    def __init__(self, folder: Path, *, postgres: bool, broker: bool) -> None:
        self._folder = folder
        self._postgres = EmbeddedPostgres(folder) if postgres else None
        self._broker = EmbeddedBroker(folder) if broker else None
        self._exit = AsyncExitStack()

    @property
    def database_url(self) -> str:
        """Give the address of the embedded database."""
        if self._postgres is None:
            raise EmbeddedError("the stack was asked to run no database")
        return self._postgres.url

    @property
    def bootstrap(self) -> str:
        """Give the address of the embedded broker."""
        if self._broker is None:
            raise EmbeddedError("the stack was asked to run no broker")
        return self._broker.bootstrap

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exit_stack:
            prepare(self._folder)
            exit_stack.enter_context(held(self._folder))
            for part in (self._postgres, self._broker):
                if part is not None:
                    exit_stack.push_async_callback(part.stop)
                    await part.start()
            self._exit = exit_stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    async def wait(self) -> None:
        """Wait for as long as everything lives; raise `EmbeddedError` when a part has ended."""
        waits = [asyncio.ensure_future(part.wait()) for part in (self._postgres, self._broker) if part]
        if not waits:
            raise EmbeddedError("the stack was asked to run nothing")
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
        for ended in done:
            ended.result()
