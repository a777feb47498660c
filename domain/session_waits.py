"""Wait until sessions are remembered (docs/architecture/injection.md, "Read your writes")."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol
from uuid import UUID

from domain.errors import InfrastructureError

_LOOK_S: Final = 0.05

Session = tuple[str, UUID]
"""A session by its tenant and id."""


class ReadsEnds(Protocol):
    """Looks which sessions have ended."""

    async def ended(self, sessions: Collection[Session]) -> Collection[Session]:
        """Return those of ``sessions`` whose job has ended, in whatever way."""
        ...


class SessionWaits:
    """Holds no connection while somebody waits: all who wait share one short look, every 50 ms."""

    def __init__(
        self, *, reads: ReadsEnds, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._reads = reads
        self._pause = pause
        self._waiting: dict[Session, list[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def __call__(self, tenant_id: str, session_id: UUID, *, seconds: float) -> bool:
        """Return whether the job of the session has ended, as soon as it has or ``seconds`` are over.

        A session that nobody has told of yet is waited for like one whose job is under way.
        """
        session, ended = (tenant_id, session_id), asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, []).append(ended)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds):
                await ended
        except TimeoutError:
            return False
        else:
            return True
        finally:
            self._forget(session, ended)

    async def _look(self) -> None:
        while self._waiting:
            try:
                found = await self._reads.ended(list(self._waiting))
            except InfrastructureError:
                # Who waits is answered when the time is over, with the error of the read itself.
                found = ()
            for session in found:
                for one in self._waiting.get(session, ()):
                    if not one.done():
                        one.set_result(None)
            await self._pause(_LOOK_S)

    def _forget(self, session: Session, ended: "asyncio.Future[None]") -> None:
        left = [one for one in self._waiting.get(session, ()) if one is not ended]
        if left:
            self._waiting[session] = left
        else:
            self._waiting.pop(session, None)
