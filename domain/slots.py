"""Slots: how many jobs of one tenant run at once, and when what is beyond them comes again.

Why the times are as they are: docs/architecture/fairness.md, "When it comes again".
"""

from dataclasses import dataclass
from typing import Final

SHORTEST_WAIT_S: Final = 0.2
_LONGEST_WAIT_S: Final = 600.0
_FIRST_S: Final = 1.0
_NEWEST_SHARE: Final = 0.1


class Pace:
    """How long a job takes at the moment, waiting for a worker included: an average over the last ones."""

    def __init__(self) -> None:
        self.seconds = _FIRST_S
        self._newest = 1.0

    def note(self, seconds: float) -> None:
        """Take in a job that took ``seconds``; the first few count as much as one another."""
        self.seconds += self._newest * (max(seconds, 0.0) - self.seconds)
        self._newest = max(_NEWEST_SHARE, self._newest / (1 + self._newest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The jobs of one tenant that wait, live or replayed ones, and the slots that they wait for."""

    waiting: int
    slots: int

    def seconds(self, *, job_seconds: float) -> float:
        """Return how long the slots need for all that waits.

        Jobs put back for a time drawn evenly from this come back as fast as the slots take them, however many
        they are: the churn is that of the slots, not that of the queue.
        """
        needed = job_seconds * self.waiting / max(self.slots, 1)
        return min(max(needed, SHORTEST_WAIT_S), _LONGEST_WAIT_S)
