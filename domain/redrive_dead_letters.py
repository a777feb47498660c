"""Send dead letters on their way again, and delete them (docs/architecture/dead-letters.md)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from domain.dead_letters import LetterFilter, LetterGroup, LetterStatus, Place

_PAGE: Final = 200


class RedriveStore(Protocol):
    """The dead letters that are kept; every method is one unit of work."""

    async def groups(self, wanted: LetterFilter) -> Sequence[LetterGroup]:
        """Count the letters that ``wanted`` means, by topic and class."""
        ...

    async def places(self, wanted: LetterFilter, *, after: Place | None, most: int) -> Sequence[Place]:
        """Return the next ``most`` places that ``wanted`` means, in their order, behind ``after``."""
        ...

    async def redrive(self, place: Place, *, statuses: Collection[LetterStatus]) -> bool:
        """Mark the letter as redriven and write its record for its lane, in one transaction.

        Say whether it was in one of ``statuses``; in another one nothing is done.
        """
        ...

    async def purge(self, places: Sequence[Place], wanted: LetterFilter) -> int:
        """Delete the letters at ``places`` that ``wanted`` still means; say how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a redrive or a purge would do: the letters that are meant, and how many of them have no lane."""

    groups: tuple[LetterGroup, ...]
    stranded: int = 0

    @property
    def total(self) -> int:
        """How many letters are meant."""
        return sum(group.count for group in self.groups)


class RedriveDeadLetters:
    """Redrive letters, each in a transaction of its own: what is cut off is neither lost nor doubled.

    ``lanes`` are the topics whose letters have a lane to go to.
    """

    def __init__(self, *, letters: RedriveStore, lanes: Collection[str]) -> None:
        self._letters = letters
        self._lanes = frozenset(lanes)

    async def plan(self, wanted: LetterFilter) -> Plan:
        """Count what would be redriven, and change nothing."""
        found = await self._letters.groups(wanted)
        able = tuple(group for group in found if group.topic in self._lanes)
        return Plan(
            groups=able, stranded=sum(group.count for group in found if group.topic not in self._lanes)
        )

    async def __call__(
        self, wanted: LetterFilter, *, limit: int | None, on_redriven: Callable[[], None]
    ) -> int:
        """Redrive the letters that ``wanted`` means, ``limit`` at most, in the order of their places.

        ``on_redriven`` is called after each. Return how many were redriven.

        Raises:
            StorageUnavailableError: the database is away; what was redriven until then stays so.
        """
        topics = tuple(sorted(self._lanes.intersection(wanted.topics) if wanted.topics else self._lanes))
        if not topics:
            return 0
        able, done, after = replace(wanted, topics=topics), 0, None
        while limit is None or done < limit:
            most = _PAGE if limit is None else min(_PAGE, limit - done)
            places = await self._letters.places(able, after=after, most=most)
            if not places:
                break
            for place in places:
                if await self._letters.redrive(place, statuses=wanted.statuses):
                    done += 1
                    on_redriven()
            after = places[-1]
        return done


class PurgeDeadLetters:
    """Delete letters for good; their records on the dead-letter topic stay as long as its retention says."""

    def __init__(self, *, letters: RedriveStore) -> None:
        self._letters = letters

    async def plan(self, wanted: LetterFilter) -> Plan:
        """Count what would be deleted, and change nothing."""
        return Plan(groups=tuple(await self._letters.groups(wanted)))

    async def __call__(
        self, wanted: LetterFilter, *, limit: int | None, on_purged: Callable[[int], None]
    ) -> int:
        """Delete the letters that ``wanted`` means, ``limit`` at most; return how many went."""
        done, after = 0, None
        while limit is None or done < limit:
            most = _PAGE if limit is None else min(_PAGE, limit - done)
            places = await self._letters.places(wanted, after=after, most=most)
            if not places:
                break
            gone = await self._letters.purge(places, wanted)
            done, after = done + gone, places[-1]
            on_purged(gone)
        return done
