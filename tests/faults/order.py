"""Whether events are complete, told in order, and the same when they are told again."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from uuid import UUID, uuid5

from schemas.topics import LANES, Topics
from tests.faults.snapshot import Snapshot
from tests.faults.words import told
from tests.support.publishing import Read
from tests.support.tables import Row

_NAMES: Final = Topics()
_STARTED: Final = "memory.job.started"
_COMPLETED: Final = "memory.job.completed"

Scope = tuple[str, str]


def of_order(seen: Snapshot) -> list[str]:
    """Return what is wrong with events and their order, in words."""
    numbers = _Numbers.of(seen)
    return [
        *_same_again(seen.records[_NAMES.events]),
        *_complete(seen, numbers),
        *_in_order(seen.records[_NAMES.events], numbers),
        *_facts_in_order(seen, numbers),
        *_last_states(seen, numbers),
        *_one_at_a_time(seen),
    ]


def first_sendings(records: Sequence[Read]) -> Iterator[Read]:
    """Yield each event where it was sent first, in the order of the partitions."""
    known: set[str | None] = set()
    for record in records:
        name = record.header("ce_id")
        if name not in known:
            known.add(name)
            yield record


def second_sendings(seen: Snapshot) -> int:
    """Count the events that were sent again."""
    return sum(
        len(records) - len({record.header("ce_id") for record in records})
        for records in (seen.records[_NAMES.events], seen.records[_NAMES.facts])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """The ids that the events of each scope must have, and their numbers, by what the tables say."""

    of_facts: Mapping[str, int]
    of_others: Mapping[Scope, int]
    last_of_fact: Mapping[str, Row] = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Snapshot) -> "_Numbers":
        versions = seen.rows["versions"]
        return cls(
            of_facts={str(uuid5(row["fact_id"], str(row["number"]))): row["number"] for row in versions},
            of_others={(row["tenant_id"], str(row["user_id"])): row["events"] for row in seen.rows["scopes"]},
            # Versions come in the order of their numbers.
            last_of_fact={str(row["fact_id"]): row for row in versions},
        )

    def find(self, event: Read) -> int | None:
        """Return the number behind the id of ``event``, which is made of it and the subject."""
        name, subject = event.header("ce_id") or "", UUID(event.header("ce_subject") or "")
        if (known := self.of_facts.get(name)) is not None:
            return known
        most = self.of_others.get(_scope_of(event), 0)
        return next((n for n in range(1, most + 1) if str(uuid5(subject, str(n))) == name), None)


def _scope_of(event: Read) -> Scope:
    tenant, _, user = (event.key or b"").decode().rpartition(":")
    return tenant, user


def _is_of_job(event: Read) -> bool:
    return (event.header("ce_type") or "").startswith("memory.job.")


def _is_of_fact(event: Read) -> bool:
    return (event.header("ce_type") or "").startswith("memory.fact.")


def _same_again(events: Sequence[Read]) -> list[str]:
    forms: dict[str | None, set[tuple[bytes | None, bytes | None]]] = defaultdict(set)
    for event in events:
        forms[event.header("ce_id")].add((event.key, event.value))
    return told("event ids stand for two events", (one for one, found in forms.items() if len(found) > 1))


def _complete(seen: Snapshot, numbers: _Numbers) -> list[str]:
    """Every version was told on both topics, nothing else was, and no number of a scope is missing."""
    events = list(first_sendings(seen.records[_NAMES.events]))
    sent = {event.header("ce_id") for event in events if _is_of_fact(event)}
    shown = {record.header("ce_id") for record in seen.records[_NAMES.facts]}
    by_scope: dict[Scope, set[int | None]] = defaultdict(set)
    for event in events:
        if not _is_of_job(event):
            by_scope[_scope_of(event)].add(numbers.find(event))
    missing = [
        scope for scope, most in numbers.of_others.items() if by_scope[scope] != set(range(1, most + 1))
    ]
    return [
        *told("changes of facts were not told", numbers.of_facts.keys() - sent),
        *told("changes of facts were told that were none", sent - numbers.of_facts.keys()),
        *told("changes of facts are not on the compacted topic", numbers.of_facts.keys() - shown),
        *told("records of the compacted topic are no change", shown - numbers.of_facts.keys()),
        *told("scopes whose events are not all there", missing),
    ]


def _in_order(events: Sequence[Read], numbers: _Numbers) -> list[str]:
    last: dict[Scope, int] = defaultdict(int)
    late: list[str] = []
    for event in first_sendings(events):
        number = None if _is_of_job(event) else numbers.find(event)
        if number is None:
            continue
        scope = _scope_of(event)
        if number < last[scope]:
            late.append(f"{scope}: {number} after {last[scope]}")
        last[scope] = max(last[scope], number)
    return told("events out of order in their scope", late)


def _facts_in_order(seen: Snapshot, numbers: _Numbers) -> list[str]:
    last: dict[bytes | None, int] = defaultdict(int)
    late: list[str] = []
    for record in first_sendings(seen.records[_NAMES.facts]):
        number = numbers.of_facts.get(record.header("ce_id") or "", 0)
        if number < last[record.key]:
            late.append(f"{record.key!r}: {number} after {last[record.key]}")
        last[record.key] = max(last[record.key], number)
    return told("facts out of order on the compacted topic", late)


def _last_states(seen: Snapshot, numbers: _Numbers) -> list[str]:
    """What compaction leaves is what the table has."""
    left = {(record.key or b"").decode(): record for record in seen.records[_NAMES.facts]}
    rows = {str(row["fact_id"]): row for row in seen.rows["facts"]}
    stale = [
        f"{fact_id}: {_number(record, numbers)} instead of {last['number']}"
        for fact_id, last in numbers.last_of_fact.items()
        if (record := left.get(fact_id)) is not None and _number(record, numbers) != last["number"]
    ]
    wrong = [fact_id for fact_id, record in left.items() if _shown(record) != _stored(rows.get(fact_id))]
    return [
        *told("facts end on the compacted topic in an older state", stale),
        *told("facts of the compacted topic are not those of the table", wrong),
    ]


def _number(record: Read, numbers: _Numbers) -> int | None:
    return numbers.of_facts.get(record.header("ce_id") or "")


def _shown(record: Read) -> tuple[object, ...] | None:
    if record.value is None:
        return None
    fact = record.json()
    return fact["revision"], fact["status"], fact["fact_key"], fact["fact_value"], fact["reinforced"]


def _stored(row: Row | None) -> tuple[object, ...] | None:
    if row is None or row["status"] == "deleted":
        return None
    return row["revision"], row["status"], row["fact_key"], row["fact_value"], row["reinforced"]


def _one_at_a_time(seen: Snapshot) -> list[str]:
    """The jobs of a scope in one lane are done one after another, in the order in which they were ordered.

    A job that was ordered or started again, because it failed or its worker went, may be overtaken.
    """
    places: dict[tuple[str, str], int] = {}
    runs: dict[Scope, list[tuple[str, str]]] = defaultdict(list)
    for place, event in enumerate(first_sendings(seen.records[_NAMES.events])):
        kind = event.header("ce_type") or ""
        if kind in (_STARTED, _COMPLETED):
            places[event.header("ce_subject") or "", kind] = place
            runs[_scope_of(event)].append((event.header("ce_subject") or "", kind))
    counts = Counter(run for found in runs.values() for run in found)
    late: list[str] = []
    for before, after in _neighbours(seen, counts):
        if places[after, _STARTED] < places[before, _COMPLETED]:
            late.append(f"{after} began before {before} had ended")
    return told("jobs out of order in their scope", late)


def _neighbours(seen: Snapshot, counts: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """Yield jobs that were done undisturbed, one ordered after the other, of one scope and lane."""
    for lane in LANES:
        records = seen.records[_NAMES.jobs(lane)]
        orders = Counter(_job_of(record) for record in records)
        lanes: dict[bytes | None, list[str]] = defaultdict(list)
        for record in records:
            job = _job_of(record)
            is_plain = orders[job] == counts[job, _STARTED] == counts[job, _COMPLETED] == 1
            if is_plain:
                lanes[record.key].append(job)
        for jobs in lanes.values():
            yield from pairwise(jobs)


def _job_of(record: Read) -> str:
    return str(json.loads(record.value or b"{}").get("job_id"))
