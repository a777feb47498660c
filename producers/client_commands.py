"""The commands of the client: what is stored, changed, deleted and restored (docs/architecture/client.md)."""

from abc import ABC, abstractmethod
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel

from producers.client_messages import UserId, checked, message_fields, user_fields
from schemas import commands
from schemas.fact import Fact
from schemas.wire import Sent

T = TypeVar("T", bound=BaseModel)


class FactResult(Sent):
    """The fact that a command stored or changed; none where it is hidden."""

    fact: Fact | None


class Removed(Sent):
    """How many facts a command took away."""

    removed: int


class ClientCommands(ABC):
    """The methods of ``MemoryClient`` that change memory.

    Each takes a ``command_id``; the same one again, as after a time-out, changes nothing and is answered the
    same. Without one it is made anew.
    """

    @property
    @abstractmethod
    def tenant_id(self) -> str:
        """The tenant whose memory is changed."""

    @abstractmethod
    async def _command(self, body: bytes, user: UserId, model: type[T], timeout: float | None) -> T:
        """Send a command and return its result."""

    async def store_fact(
        self,
        *,
        user: UserId,
        category: str,
        fact_key: str,
        fact_value: str,
        timeout: float | None = None,
        **more: Any,
    ) -> Fact | None:
        """Remember a fact and return it as it is now.

        ``more`` is any other field of ``fact.store``: ``content``, ``aliases``, ``topics``, ``confidence``,
        ``importance``, ``expires_at``, ``said_at``, ``avatar_id``, ``command_id``.

        Raises:
            MemoryRequestError: a field breaks the rules of a fact.
        """
        said = {"category": category, "fact_key": fact_key, "fact_value": fact_value, **more}
        return (await self._sent(commands.FactStore, "fact.store", FactResult, user, timeout, **said)).fact

    async def update_fact(
        self,
        fact_id: UUID,
        fact_value: str,
        *,
        user: UserId,
        how: Literal["change", "correction"] = "change",
        timeout: float | None = None,
        **more: Any,
    ) -> Fact | None:
        """Give a fact another value, since it changed or since it was wrong, and return what is current.

        Raises:
            MemoryNotFoundError: the user has no such fact.
        """
        said = {"fact_id": str(fact_id), "fact_value": fact_value, "as": how, **more}
        return (await self._sent(commands.FactUpdate, "fact.update", FactResult, user, timeout, **said)).fact

    async def delete_fact(
        self, fact_id: UUID, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> int:
        """Hide a fact (``mode`` ``forget``), or take it back as wrong (``disown``); return how many went.

        Raises:
            MemoryNotFoundError: the user has no such fact.
        """
        said = {"fact_id": str(fact_id), **more}
        return (await self._sent(commands.FactDelete, "fact.delete", Removed, user, timeout, **said)).removed

    async def restore_fact(
        self, fact_id: UUID, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> Fact | None:
        """Lift earlier deletes of a fact and return it.

        Raises:
            MemoryNotFoundError: the user has no such fact.
        """
        said = {"fact_id": str(fact_id), **more}
        return (
            await self._sent(commands.FactRestore, "fact.restore", FactResult, user, timeout, **said)
        ).fact

    async def _sent(
        self,
        command: type[commands.Command],
        kind: str,
        model: type[T],
        user: UserId,
        timeout: float | None,
        **more: Any,
    ) -> T:
        fields = {
            "type": kind,
            "command_id": str(uuid4()),
            "tenant_id": self.tenant_id,
            **user_fields(user),
            **message_fields(more),
        }
        return await self._command(checked(command, fields), user, model, timeout)
