"""Look at what a round left behind and name every promise that was broken."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from schemas.topics import LANES, Topics
from tests.faults.corpus import POISON, Corpus, Fate
from tests.faults.order import first_sendings, of_order
from tests.faults.snapshot import Snapshot
from tests.faults.words import told
from tests.support.publishing import Read
from tests.support.tables import Row

_NAMES: Final = Topics()
_CLASSES: Final[Mapping[Fate, str]] = {Fate.REFUSED: "permanent", Fate.HOPELESS: "exhausted"}

Place = tuple[str, int, int]


def broken_promises(seen: Snapshot, corpus: Corpus, undisturbed: Mapping[str, Iterable[Row]]) -> list[str]:
    """Return what is wrong, in words; nothing when every promise holds."""
    return [
        *_of_sessions(seen, corpus),
        *_of_endings(seen, corpus),
        *_of_memory(seen, undisturbed),
        *_of_dead_letters(seen, corpus),
        *of_order(seen),
        *_of_what_is_left(seen),
    ]


def _of_sessions(seen: Snapshot, corpus: Corpus) -> list[str]:
    """Each session has one job, which ended as it should and is held by nobody."""
    jobs = seen.rows["jobs"]
    by_session = Counter(row["session_id"] for row in jobs)
    stored = {row["session_id"] for row in seen.rows["sessions"]}
    wanted = {"completed": corpus.good, "dead": corpus.dying.keys()}
    return [
        *told("sessions lost", corpus.sessions.keys() - stored),
        *told("sessions that nobody sent", stored - corpus.sessions.keys()),
        *told("sessions without a job", corpus.sessions.keys() - by_session.keys()),
        *told("sessions with several jobs", (one for one, count in by_session.items() if count > 1)),
        *told(
            "jobs that did not end as they should",
            (
                f"{row['session_id']} {row['status']} {row['error']}"
                for row in jobs
                if row["session_id"] not in wanted.get(row["status"], ())
            ),
        ),
        *told("sessions taken in twice", (row["session_id"] for row in jobs if row["revision"] != 1)),
        *told("jobs with a claim left", (row["job_id"] for row in jobs if row["claimed_until"] is not None)),
    ]


def _of_endings(seen: Snapshot, corpus: Corpus) -> list[str]:
    """The events tell the end of each job once."""
    endings = Counter(
        (UUID(event.json()["job"]["session_id"]), event.header("ce_type") or "")
        for event in first_sendings(seen.records[_NAMES.events])
        if event.header("ce_type") in ("memory.job.completed", "memory.job.dead", "memory.job.gated")
    )
    wanted = Counter(
        {
            **{(session, "memory.job.completed"): 1 for session in corpus.good},
            **{(session, "memory.job.dead"): 1 for session in corpus.dying},
        }
    )
    return [
        *told("ends of jobs were not told", (wanted - endings).keys()),
        *told("ends of jobs were told too often", (endings - wanted).keys()),
    ]


def _of_memory(seen: Snapshot, undisturbed: Mapping[str, Iterable[Row]]) -> list[str]:
    """The memory is that of an undisturbed run."""
    broken: list[str] = []
    for name, rows in undisturbed.items():
        wanted, found = (Counter(map(_frozen, one)) for one in (rows, seen.memory[name]))
        broken += told(f"{name} are missing", (wanted - found).elements())
        broken += told(f"{name} are too many", (found - wanted).elements())
    return broken


def _frozen(row: Row) -> str:
    # What tells rows apart comes first, for whoever reads of one.
    return json.dumps(
        dict(sorted(row.items(), key=lambda one: (not one[0].endswith("_id"), one[0]))), default=str
    )


def _of_dead_letters(seen: Snapshot, corpus: Corpus) -> list[str]:
    """What cannot be handled has one row and one letter, as it came; nothing else has one."""
    rows = {_place_of_row(row, seen): row for row in seen.rows["letters"]}
    broken = {
        (topic, record.partition, record.offset): record
        for topic in (_NAMES.ended, _NAMES.replay)
        for record in seen.records[topic]
        if (record.value or b"").startswith(POISON)
    }
    jobs = {place: row for place, row in rows.items() if place not in broken}
    return [
        *told("broken records without a dead letter", broken.keys() - rows.keys()),
        *told(
            "dead letters of broken records are not as they came",
            (
                place
                for place, record in broken.items()
                if place in rows
                and (rows[place]["error_class"], rows[place]["key"], rows[place]["value"])
                != ("undecodable", record.key, record.value)
            ),
        ),
        *_of_dead_jobs(jobs, corpus),
        *_of_letters(seen, rows),
    ]


def _of_dead_jobs(letters: Mapping[Place, Row], corpus: Corpus) -> list[str]:
    lanes = {_NAMES.jobs(lane) for lane in LANES}
    found = Counter(
        (UUID(json.loads(row["value"])["session_id"]), row["error_class"])
        for (topic, _, _), row in letters.items()
        if topic in lanes
    )
    wanted = Counter({(one.session_id, _CLASSES[one.fate]): 1 for one in corpus.dying.values()})
    return [
        *told("dead letters that nothing explains", (one for one in letters if one[0] not in lanes)),
        *told("dead jobs without a dead letter", (wanted - found).keys()),
        *told("dead letters of jobs too many", (found - wanted).elements()),
    ]


def _of_letters(seen: Snapshot, rows: Mapping[Place, Row]) -> list[str]:
    """The topic has each letter, with the bytes of its row; a second sending is the same in every byte."""
    sendings: dict[Place, set[Read]] = {}
    for letter in seen.records[_NAMES.dead_letters]:
        place = _place_of_letter(letter, seen)
        sendings.setdefault(place, set()).add(_without_place(letter))
    return [
        *told("dead letters were not sent", rows.keys() - sendings.keys()),
        *told("dead letters without a row", sendings.keys() - rows.keys()),
        *told(
            "dead letters were sent in two forms", (one for one, forms in sendings.items() if len(forms) > 1)
        ),
        *told(
            "dead letters have other bytes than their row",
            (
                place
                for place, forms in sendings.items()
                for form in forms
                if place in rows and (form.key, form.value) != (rows[place]["key"], rows[place]["value"])
            ),
        ),
    ]


def _place_of_row(row: Row, seen: Snapshot) -> Place:
    return row["topic"].removeprefix(seen.prefix), row["partition"], row["offset"]


def _place_of_letter(letter: Read, seen: Snapshot) -> Place:
    topic = (letter.header("dlq-topic") or "").removeprefix(seen.prefix)
    return topic, int(letter.header("dlq-partition") or -1), int(letter.header("dlq-offset") or -1)


def _without_place(letter: Read) -> Read:
    return Read(partition=0, offset=0, key=letter.key, value=letter.value, headers=letter.headers)


def _of_what_is_left(seen: Snapshot) -> list[str]:
    return [
        *told("rows are left in the outbox", (row["topic"] for row in seen.rows["outbox"])),
        *told("transactions are left idle", (row["query"] for row in seen.rows["idle"])),
    ]
