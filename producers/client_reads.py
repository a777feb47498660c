"""The reads of the client beside injections (docs/architecture/client.md)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

from producers.client_errors import MemoryRequestError
from producers.client_messages import UserId, checked, message_fields, user_fields
from schemas import queries
from schemas.fact import Context, Fact, FactList, FactStory, FoundFact, FoundFacts
from schemas.wire import Sent

T = TypeVar("T", bound=BaseModel)


class Page(Sent):
    """One page of a list, each item under the names of the contract."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None = None


class ClientReads(ABC):
    """The methods of ``MemoryClient`` that ask and change nothing."""

    @property
    @abstractmethod
    def tenant_id(self) -> str:
        """The tenant whose memory is read."""

    @abstractmethod
    async def _question(self, body: bytes, about: UserId, model: type[T], timeout: float | None) -> T:
        """Send a question and return its answer."""

    async def facts(self, *, user: UserId, timeout: float | None = None, **more: Any) -> FactList:
        """Return a page of the facts of ``user``; ``more``: ``status``, ``types``, ``cursor``, ``limit``."""
        return await self._asked(queries.FactsList, FactList, user, timeout, **more)

    async def search(
        self, query: str, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> Sequence[FoundFact]:
        """Return the facts of ``user`` that are about ``query``, best first; nothing where nothing is.

        ``more`` is any other field of ``facts.search``: ``types``, ``topics``, ``limit``, ``as_of``.
        """
        found = await self._asked(queries.FactsSearch, FoundFacts, user, timeout, query=query, **more)
        return found.items

    async def context(
        self, query: str | None = None, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> Context:
        """Return what a prompt about ``query`` should know: core facts, and what is relevant to it.

        ``more`` is any other field of ``context.get``: ``topics``, ``char_budget``, ``as_of``.
        """
        return await self._asked(queries.ContextGet, Context, user, timeout, query=query, **more)

    async def core_facts(self, *, user: UserId, timeout: float | None = None, **more: Any) -> Sequence[Fact]:
        """Return the important and certain facts of ``user``, the most important first."""
        return (await self._asked(queries.FactsCore, FactList, user, timeout, **more)).items

    async def fact(self, fact_id: UUID, *, user: UserId, timeout: float | None = None, **more: Any) -> Fact:
        """Return one fact with its evidence.

        Raises:
            MemoryNotFoundError: the user has no such fact.
        """
        return await self._asked(queries.FactsGet, Fact, user, timeout, fact_id=str(fact_id), **more)

    async def history(
        self, fact_id: UUID, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> FactStory:
        """Return what became of a fact, and on what evidence.

        Raises:
            MemoryNotFoundError: the user has no such fact.
        """
        return await self._asked(queries.FactsHistory, FactStory, user, timeout, fact_id=str(fact_id), **more)

    async def listed(
        self, kind: str, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a page of what ``kind`` lists, newest first, and where the next one starts.

        ``kind`` is ``sessions.list``, ``jobs.list``, ``candidates.list``, ``clarifications.list`` or
        ``messages.recent``; ``more``: ``cursor``, ``limit``, ``session_id``.
        """
        question = queries.QUERIES.get(kind)
        if question is None or not issubclass(question, queries.Listing):
            raise MemoryRequestError("kind: expected a list", code="invalid_request")
        return (await self._asked(question, Page, user, timeout, **more)).model_dump()

    async def recent_messages(
        self, *, user: UserId, timeout: float | None = None, **more: Any
    ) -> Sequence[dict[str, Any]]:
        """Return the last messages, newest first; ``more``: ``session_id``, ``limit``."""
        return (await self._asked(queries.MessagesRecent, Page, user, timeout, **more)).items

    async def memory_types(self, *, timeout: float | None = None) -> Sequence[dict[str, Any]]:
        """Return the memory types that the service knows."""
        body = checked(queries.TypesList, {"type": "types.list"})
        return (await self._question(body, "types", Page, timeout)).items

    # The names of an earlier client.
    retrieve_relevant = search
    get_core_facts = core_facts
    get_conversation_context = context
    get_recent_conversation = recent_messages

    async def _asked(
        self,
        question: type[queries.ScopedQuery],
        model: type[T],
        user: UserId,
        timeout: float | None,
        **more: Any,
    ) -> T:
        fields = {
            "type": question.kind(),
            "tenant_id": self.tenant_id,
            **user_fields(user),
            **message_fields(more),
        }
        return await self._question(checked(question, fields), user, model, timeout)
