"""What follows the commit of a conversation: never part of it, done on its own, and done again on its own.

A follow-up reads what was committed. It adds to it beside the facts and cannot change them
(docs/architecture/follow-ups.md).
"""

from typing import Protocol

from domain.jobs import JobOrder
from domain.summaries import Told, is_due, summary_of


class SummaryStore(Protocol):
    """Conversations to sum up, and their summaries."""

    async def told(self, order: JobOrder) -> Told | None:
        """Return the conversation of ``order``; None where it is not there any more."""
        ...

    async def keep(self, order: JobOrder, told: Told, summary: str) -> bool:
        """Store ``summary`` with its event; say whether it was newer than what was there."""
        ...


class FollowUp:
    """Sums up a long conversation, once for every so many messages."""

    def __init__(self, *, summaries: SummaryStore, every: int) -> None:
        self._summaries = summaries
        self._every = every

    def is_due_after(self, messages: int) -> bool:
        """Say whether a conversation of so many messages has anything to follow it."""
        return messages >= self._every

    async def __call__(self, order: JobOrder) -> None:
        """Do what follows the commit that ``order`` names.

        Raises:
            InfrastructureError: the database is away; the same call may be made again.
        """
        told = await self._summaries.told(order)
        if told is not None and is_due(told, every=self._every) and (summary := summary_of(told)):
            await self._summaries.keep(order, told, summary)
