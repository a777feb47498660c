"""A door in front of PostgreSQL that counts what passes: statements, round trips, transactions."""

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_UNTYPED_REQUESTS: Final = {80877103, 80877104}  # for TLS, for GSS encryption: answered with one byte
_CHUNK: Final = 65_536


@dataclass(slots=True)
class Counts:
    """What passed since the last look; ``by_text`` counts the executions of each statement."""

    statements: int = 0
    round_trips: int = 0
    transactions: int = 0
    by_text: Counter[str] = field(default_factory=Counter)


class StatementCounter:
    """Counts over all connections through the door; the counts of an idle door stand still."""

    def __init__(self) -> None:
        self.counts = Counts()

    def take(self) -> Counts:
        """Return what was counted, and count from zero."""
        counts, self.counts = self.counts, Counts()
        return counts


class _FromClient:
    """Reads what a client sends."""

    def __init__(self, counter: StatementCounter) -> None:
        self._counter = counter
        self._started = False
        self._texts: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}

    def split(self, buffer: bytearray) -> None:
        """Take whole messages off ``buffer``."""
        while True:
            head = 1 if self._started else 0
            if len(buffer) < head + 4:
                return
            (length,) = struct.unpack_from("!i", buffer, head)
            if len(buffer) < head + length:
                return
            body = bytes(buffer[head + 4 : head + length])
            kind = bytes(buffer[:1]) if self._started else b""
            del buffer[: head + length]
            self._seen(kind, body)

    def _seen(self, kind: bytes, body: bytes) -> None:
        match kind:
            case b"":
                self._started = struct.unpack_from("!i", body)[0] not in _UNTYPED_REQUESTS
            case b"P":
                name, text, *_ = body.split(b"\0", 2)
                self._texts[name] = text.decode(errors="replace")
            case b"B":
                portal, name, *_ = body.split(b"\0", 2)
                self._portals[portal] = self._texts.get(name, "?")
            case b"E":
                self._executed(self._portals.get(body.partition(b"\0")[0], "?"))
            case b"Q":
                self._counter.counts.round_trips += 1
                self._executed(body.rstrip(b"\0").decode(errors="replace"))
            case b"S":
                self._counter.counts.round_trips += 1
            case _:
                pass

    def _executed(self, text: str) -> None:
        # A pool asks nothing to see whether a connection still lives.
        if text.strip():
            self._counter.counts.statements += 1
            self._counter.counts.by_text[" ".join(text.split())] += 1


class _FromServer:
    """Reads what the server sends: which transactions ended, said to be ones or a statement each."""

    def __init__(self, counter: StatementCounter) -> None:
        self._counter = counter
        self._greeted = False
        self._in_block = False
        self._alone = False

    def split(self, buffer: bytearray) -> None:
        """Take whole messages off ``buffer``."""
        if not self._greeted and bytes(buffer[:1]) in {b"N", b"S"} and len(buffer) == 1:
            buffer.clear()
            return
        while len(buffer) >= 5:
            (length,) = struct.unpack_from("!i", buffer, 1)
            if len(buffer) < 1 + length:
                return
            kind, body = bytes(buffer[:1]), bytes(buffer[5 : 1 + length])
            del buffer[: 1 + length]
            self._seen(kind, body)

    def _seen(self, kind: bytes, body: bytes) -> None:
        match kind, body.rstrip(b"\0"):
            case b"C", b"BEGIN":
                self._in_block = True
            case b"C", b"COMMIT" | b"ROLLBACK":
                self._in_block = False
                self._counter.counts.transactions += 1
            case b"C", _:
                self._alone = self._alone or not self._in_block
            case b"Z", _:
                self._counter.counts.transactions += self._alone
                self._alone, self._greeted = False, True
            case _:
                pass


@asynccontextmanager
async def counted(database_url: str) -> AsyncGenerator[tuple[str, StatementCounter]]:
    """Give the URL of a door to ``database_url``, and what counts there."""
    target = urlsplit(database_url)
    counter = StatementCounter()
    writers: set[asyncio.StreamWriter] = set()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(target.hostname, target.port or 5432)
        writers.update((writer, there[1]))
        async with asyncio.TaskGroup() as group:
            group.create_task(_pass(reader, there[1], _FromClient(counter).split))
            group.create_task(_pass(there[0], writer, _FromServer(counter).split))

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user, at, _ = target.netloc.rpartition("@")
    try:
        yield urlunsplit(target._replace(netloc=f"{user}{at}127.0.0.1:{port}")), counter
    finally:
        for writer in writers:
            writer.close()
        server.close()
        await server.wait_closed()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, split: Callable[[bytearray], None]
) -> None:
    buffer = bytearray()
    try:
        while data := await reader.read(_CHUNK):
            buffer += data
            split(buffer)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
