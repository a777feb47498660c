"""Look at tables and topics after a round and name every promise that was broken."""

from collections import Counter

from tests.faults.corpus import Corpus
from tests.support.disturbances import Stage, ends_told
from tests.support.publishing import Read, lag, read_all, until


async def broken_promises(on: Stage, corpus: Corpus) -> list[str]:
    """Return what is wrong, in words; nothing when every promise holds."""
    await _offsets_committed(on)
    return [
        *await _of_sessions(on, corpus),
        *await _of_dead_letters(on, corpus),
        *await _of_events(on, corpus),
        *await _of_what_is_left(on),
    ]


async def _of_sessions(on: Stage, corpus: Corpus) -> list[str]:
    jobs = await on.tables.jobs()
    lost = corpus.sessions - {row["session_id"] for row in jobs}
    unfinished = [row for row in jobs if row["status"] != "completed"]
    revised = [row for row in jobs if row["revision"] != 1]
    return [
        *([f"{len(lost)} sessions lost"] if lost else []),
        *(f"session {row['session_id']} is {row['status']}: {row['error']}" for row in unfinished),
        *(f"session {row['session_id']} was taken in {row['revision']} times" for row in revised),
    ]


async def _of_dead_letters(on: Stage, corpus: Corpus) -> list[str]:
    letters = await read_all(on.service.kafka, on.service.topics.dead_letters)
    places = {
        (one.header("dlq-topic"), one.header("dlq-partition"), one.header("dlq-offset")) for one in letters
    }
    found = [
        f"{len(places)} different dead letters instead of {corpus.broken}"
        if len(places) != corpus.broken
        else "",
        "a dead letter that was no broken record"
        if any(not (letter.value or b"").startswith(b"{poison") for letter in letters)
        else "",
    ]
    return [line for line in found if line]


async def _of_events(on: Stage, corpus: Corpus) -> list[str]:
    told = await ends_told(on)
    expected = Counter({("memory.job.completed", str(session)): 1 for session in corpus.sessions})
    events = await read_all(on.service.kafka, on.service.topics.events)
    found = [
        "the ends of jobs that were told are not those of the sessions" if told != expected else "",
        "one event id stands for two events" if _ambiguous(events) else "",
    ]
    return [line for line in found if line]


def _ambiguous(events: list[Read]) -> bool:
    by_id: dict[str | None, set[bytes | None]] = {}
    for event in events:
        by_id.setdefault(event.header("ce_id"), set()).add(event.value)
    return any(len(values) > 1 for values in by_id.values())


async def _of_what_is_left(on: Stage) -> list[str]:
    return [] if await on.service.is_alone() else ["a process of a start before is still there"]


async def _offsets_committed(on: Stage) -> None:
    async def is_committed() -> bool:
        return await lag(on.service.kafka, [on.service.topics.ended]) == 0

    await until(is_committed, within=60, what="every offset committed", every=0.5)
