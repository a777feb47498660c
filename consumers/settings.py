"""How a keyed consumer reads: what a deployment may tune, and what must fit together."""

from dataclasses import dataclass
from typing import Any

from producers.connection import KafkaConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Limits and times of one keyed consumer; times in seconds unless the name says otherwise.

    ``instance_id`` makes the member static: unique in the group, stable per replica. ``stop_budget`` is what
    a whole stop may take, ``drain`` of it for the handlers that run. ``max_uncommitted`` bounds, per
    partition, what one slow record can leave to be done again after a crash.
    """

    topics: tuple[str, ...]
    group: str
    instance_id: str | None = None
    max_in_flight: int = 64
    max_uncommitted: int = 1_000
    commit_every: float = 0.5
    drain: float = 12.0
    stop_budget: float = 25.0
    fetch_max_wait_ms: int = 20
    session_timeout_ms: int = 30_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_partition_fetch_bytes: int = 1 << 20
    first_backoff: float = 0.5
    most_backoff: float = 10.0

    @property
    def rebalance_timeout_ms(self) -> int:
        """Longer than the drain; else the group gives a partition away while its handlers still run."""
        return int(self.drain * 1_000) + 30_000

    def options(self, connection: KafkaConnection) -> dict[str, Any]:
        """Return the arguments of the consumer; offsets are committed by us alone."""
        return {
            **connection.options(),
            "group_id": self.group,
            "group_instance_id": self.instance_id,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": self.heartbeat_interval_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "request_timeout_ms": self.rebalance_timeout_ms + 10_000,
            "max_poll_interval_ms": self.max_poll_interval_ms,
            "fetch_max_wait_ms": self.fetch_max_wait_ms,
            "max_partition_fetch_bytes": self.max_partition_fetch_bytes,
        }
