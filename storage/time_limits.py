"""Connections that give up on a server that does not answer (docs/architecture/outages.md)."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

_SHORTEST_CONNECT_S: Final = 2

T = TypeVar("T")


class LimitedConnection(AsyncConnection):
    """A connection whose every wait for the server ends after ``answer_within`` seconds; None waits for ever.

    A server that is frozen, or gone without a word, keeps the socket open and says nothing. It is shut
    down here then, so that libpq sees what it sees of any broken connection, and nobody has to ask how the
    statement stands: the transaction is gone, and what it did is told by the tables.
    """

    answer_within: float | None = None

    async def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        """Consume ``gen``, which waits for the server.

        Raises:
            OperationalError: the server did not answer in time.
        """
        if self.answer_within is None:
            return await super().wait(gen, *args, **more)
        limit = asyncio.get_running_loop().call_later(self.answer_within, self._cut)
        try:
            return await super().wait(gen, *args, **more)
        finally:
            limit.cancel()

    def _cut(self) -> None:
        if self.closed:
            return
        # A copy of its number: libpq closes its own.
        with suppress(OSError), socket.socket(fileno=os.dup(self.pgconn.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)


def connect_options(dsn: str, answer_within: float | None) -> dict[str, Any]:
    """Return how long a connection to ``dsn`` may take to be made; what the DSN says itself comes first."""
    if answer_within is None or "connect_timeout" in conninfo_to_dict(dsn):
        return {}
    return {"connect_timeout": max(round(answer_within), _SHORTEST_CONNECT_S)}


async def connected(dsn: str, *, answer_within: float | None, **options: Any) -> LimitedConnection:
    """Connect in autocommit with ``answer_within`` seconds for making the connection and for each answer.

    Raises:
        OperationalError: the server cannot be reached.
    """
    conn = await LimitedConnection.connect(
        dsn, autocommit=True, **connect_options(dsn, answer_within), **options
    )
    conn.answer_within = answer_within
    return conn
