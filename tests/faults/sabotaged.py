"""The service with one promise broken on purpose: ``python -m tests.faults.sabotaged NAME run …``.

What is replaced is replaced in this process alone; the product has no switch for it. A runner that finds
nothing wrong with such a service looks at nothing.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final


class NothingToBreakError(Exception):
    """The place that was to be sabotaged is not there any more."""


def bare_commit() -> None:
    """Commit where the fetching has got to, whatever is done."""
    commits = importlib.import_module("consumers.commits").Commits
    original = commits._committed

    async def committed(self: Any, offsets: Mapping[Any, int], seconds: float) -> Any:
        fetched = {place: await self._consumer.position(place) for place in offsets}
        return await original(self, fetched, seconds)

    _replaced(commits, "_committed", committed)


def no_lanes() -> None:
    """Handle every record of a partition at once, whatever its key."""
    partition = importlib.import_module("consumers.partitions").Partition
    original = partition.__init__

    def keyless(self: Any, _key_of: object) -> None:
        original(self, lambda record: record.offset)

    _replaced(partition, "__init__", keyless)


def no_fencing() -> None:
    """Let whoever has ever held a job write for it."""
    for module, name in (
        ("storage.commit_read_sql", "HOLD_JOBS"),
        ("storage.commit_write_sql", "END_JOBS"),
        ("storage.job_sql", "KEEP_WINDOWS"),
        ("storage.job_sql", "END_ATTEMPT"),
    ):
        _without(
            importlib.import_module(module),
            name,
            "AND j.fence = g.fence",
            "AND j.fence = %(fence)s",
            "AND j.status = 'running'",
            "WHERE j.status = 'running'",
        )


def mark_before_ack() -> None:
    """Delete rows of the outbox when they are read."""
    outbox = importlib.import_module("storage.outbox")
    if "available_at <= now()" not in outbox.TURN:
        raise NothingToBreakError("TURN")
    instead = """
        WITH due AS (
            SELECT id, topic, key, value, header_names, header_values
              FROM lis.outbox
             WHERE available_at <= now()
               AND id <> ALL (%(done)s::bigint[])
             ORDER BY id
             LIMIT %(most)s
        ), gone AS (
            DELETE FROM lis.outbox
             WHERE id IN (SELECT id FROM due)
        )
        SELECT id, topic, key, value, header_names, header_values
          FROM due
         ORDER BY id
    """
    _replaced(outbox, "TURN", instead)


def arrival_order() -> None:
    """Take every statement for said when it is read."""
    extract_session = importlib.import_module("domain.extract_session")
    original = extract_session.assertions_of

    def arriving(*arguments: Any) -> list[Any]:
        now = datetime.now(UTC)
        return [replace(one, said_at=now) for one in original(*arguments)]

    _replaced(extract_session, "assertions_of", arriving)


SABOTAGES: Final[Mapping[str, Callable[[], None]]] = {
    "bare-commit": bare_commit,
    "no-lanes": no_lanes,
    "no-fencing": no_fencing,
    "mark-before-ack": mark_before_ack,
    "arrival-order": arrival_order,
}


def launcher(name: str | None) -> Sequence[str]:
    """Return the module that runs the service, sabotaged where ``name`` says how."""
    return ("service", "run") if name is None else ("tests.faults.sabotaged", name, "run")


def _replaced(owner: object, name: str, new: object) -> None:
    if not hasattr(owner, name):
        raise NothingToBreakError(name)
    setattr(owner, name, new)


def _without(module: ModuleType, name: str, *conditions: str) -> None:
    """Leave ``conditions`` out of the statement called ``name``; before others have imported it."""
    statement = getattr(module, name)
    left = statement
    for condition in conditions:
        left = left.replace(condition, "WHERE true" if condition.startswith("WHERE") else "")
    if left == statement:
        raise NothingToBreakError(name)
    setattr(module, name, left)


def main() -> None:
    """Break what the first argument says and run the service with the others."""
    SABOTAGES[sys.argv.pop(1)]()
    importlib.import_module("service.cli").main()


if __name__ == "__main__":
    main()
