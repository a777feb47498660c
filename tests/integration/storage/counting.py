"""Counts what reaches the database: statements, round trips and commits of the connections of a pool."""

from dataclasses import dataclass
from typing import Any, ClassVar

from psycopg import AsyncConnection, AsyncCursor
from psycopg.abc import Params
from psycopg.pq import TransactionStatus

from storage.time_limits import LimitedConnection


class CountingCursor(AsyncCursor[Any]):
    async def execute(self, query: Any, params: Params | None = None, **more: Any) -> "CountingCursor":
        CountingConnection.count(self.connection, str(query).strip())
        return await super().execute(query, params, **more)


class CountingConnection(LimitedConnection):
    """A connection whose cursors count; of a pipeline, each wait for results is a round trip."""

    statements: ClassVar[int] = 0
    round_trips: ClassVar[int] = 0
    commits: ClassVar[int] = 0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.cursor_factory = CountingCursor
        assert self.cursor_factory is CountingCursor

    @classmethod
    def count(cls, conn: AsyncConnection[Any], query: str) -> None:
        if not query:
            return  # the pool's check
        cls.statements += 1
        is_open = conn.info.transaction_status is not TransactionStatus.IDLE or conn._pipeline is not None
        if conn._pipeline is None:
            cls.round_trips += 1
        if not is_open or query == "COMMIT":
            cls.commits += 1

    async def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        name = getattr(gen, "__name__", "")
        if self._pipeline is not None and name in ("_fetch_gen", "_sync_gen", "_exit_gen"):
            type(self).round_trips += len(self._pipeline.result_queue) > 0
        elif self._pipeline is None and name in ("_enter_gen", "_exit_gen"):
            # The BEGIN and the end of a transaction, which are not sent through a cursor.
            type(self).round_trips += 1
            type(self).commits += name == "_exit_gen"
        return await super().wait(gen, *args, **more)


@dataclass(frozen=True, slots=True)
class Counted:
    """What was sent since ``start``."""

    statements: int
    round_trips: int
    commits: int

    @classmethod
    def start(cls, of: type[CountingConnection]) -> "Counted":
        return cls(of.statements, of.round_trips, of.commits)

    def stop(self) -> "Counted":
        of = CountingConnection
        return Counted(
            of.statements - self.statements, of.round_trips - self.round_trips, of.commits - self.commits
        )
