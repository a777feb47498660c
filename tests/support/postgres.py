"""One PostgreSQL server for a test run, and a database of its own for each test that asks."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from service.embedded.folders import clear_stale, prepare, temporary_folder
from service.embedded.postgres import EmbeddedPostgres
from tests.support.kafka import NotRestartableError
from tests.support.process_trees import resume_tree, suspend_tree
from tests.support.surroundings import Surroundings, docker_answers

Kind = Literal["external", "container", "wheel"]
FOLDER_PREFIX: Final = "afterword-test-postgres-"
_IMAGE: Final = "pgvector/pgvector:pg18"


class PostgresServer:
    """The server of this test run; ``url`` is a database of it whose user may create others."""

    def __init__(self, url: str, kind: Kind, *, process: EmbeddedPostgres | None = None) -> None:
        self.url = url
        self.kind: Kind = kind
        self._process = process
        self._run = uuid4().hex[:8]
        self._numbers = count(1)

    @property
    def can_restart(self) -> bool:
        return self._process is not None

    def create_database(self, template: str | None = None) -> str:
        """Create a database, empty or a copy of the one at the URL ``template``; return its URL."""
        name = f"afterword_test_{self._run}_{next(self._numbers)}"
        source = urlsplit(template).path.lstrip("/") if template else "template1"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(source)
        )
        self._execute(statement)
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def drop_database(self, url: str) -> None:
        """Drop a database that `create_database` made, whoever is connected."""
        name = urlsplit(url).path.lstrip("/")
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def kill(self) -> None:
        """SIGKILL the server with all of its processes."""
        self._own().kill()

    async def end(self) -> None:
        """End the server in order; whoever is connected is cut off."""
        await self._own().stop()

    def freeze(self) -> None:
        """SIGSTOP the server with all of its processes."""
        suspend_tree(self._own().pid)

    def thaw(self) -> None:
        """SIGCONT the server with all of its processes."""
        resume_tree(self._own().pid)

    async def restart(self) -> None:
        """Start it again on the same port and data; it recovers as after a crash."""
        await self._own().start()

    def _own(self) -> EmbeddedPostgres:
        if self._process is None:
            raise NotRestartableError(f"the {self.kind} PostgreSQL is not ours to kill")
        return self._process

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_postgres(surroundings: Surroundings) -> Generator[PostgresServer]:
    """Run the first server of the chain that this machine can run."""
    if surroundings.database_url:
        yield PostgresServer(surroundings.database_url, "external")
    elif docker_answers():
        yield from _from_docker()
    else:
        yield from _from_wheel()


def _from_docker() -> Generator[PostgresServer]:
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415  # its import asks for Docker

    with PostgresContainer(_IMAGE, driver=None) as container:
        yield PostgresServer(container.get_connection_url(), "container")


def _from_wheel() -> Generator[PostgresServer]:
    asyncio.run(clear_stale(FOLDER_PREFIX))
    with temporary_folder(FOLDER_PREFIX) as folder:
        prepare(folder)
        process = EmbeddedPostgres(folder)
        asyncio.run(process.start())
        try:
            yield PostgresServer(process.url, "wheel", process=process)
        finally:
            asyncio.run(process.stop())
