"""Names of the topics. A change here is a change of the public contract."""

from dataclasses import dataclass
from typing import Final, Literal

LaneName = Literal["priority", "standard", "bulk", "replay"]
LANES: Final[tuple[LaneName, ...]] = ("priority", "standard", "bulk", "replay")


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one installation; ``prefix`` goes before every name, but never before a reply topic."""

    prefix: str = ""

    @property
    def messages(self) -> str:
        """Single messages of conversations that go on."""
        return f"{self.prefix}conversation.messages.v1"

    @property
    def ended(self) -> str:
        """Conversations that ended."""
        return f"{self.prefix}conversation.ended.v1"

    @property
    def replay(self) -> str:
        """Conversations that come again, or come from files."""
        return f"{self.prefix}conversation.replay.v1"

    def jobs(self, lane: LaneName) -> str:
        """Return the topic of the jobs of ``lane``."""
        return f"{self.prefix}extraction.jobs.{lane}.v1"

    @property
    def injection_requests(self) -> str:
        """Requests for the memory of a scope."""
        return f"{self.prefix}memory.injection.requests.v1"

    @property
    def queries(self) -> str:
        """Questions about facts and jobs."""
        return f"{self.prefix}memory.queries.v1"

    @property
    def commands(self) -> str:
        """Changes that people and engines ask for."""
        return f"{self.prefix}memory.commands.v1"

    @property
    def events(self) -> str:
        """What happened to facts and jobs."""
        return f"{self.prefix}memory.events.v1"

    @property
    def facts(self) -> str:
        """Every fact as it is now; compacted."""
        return f"{self.prefix}memory.facts.v1"

    @property
    def dead_letters(self) -> str:
        """What could not be processed, byte for byte."""
        return f"{self.prefix}afterword.dead-letters.v1"

    @property
    def every(self) -> tuple[str, ...]:
        """All topics that the service needs."""
        return (
            self.messages,
            self.ended,
            self.replay,
            *(self.jobs(lane) for lane in LANES),
            self.injection_requests,
            self.queries,
            self.commands,
            self.events,
            self.facts,
            self.dead_letters,
        )
