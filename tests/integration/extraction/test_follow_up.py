"""What follows a commit: on its own, once, and without a hand on the facts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from consumers.translation import order_of as order_of_record
from domain.arrivals import EndedConversation
from domain.errors import StorageUnavailableError
from domain.extract_session import ExtractSession
from domain.follow_up import FollowUp
from domain.jobs import JobKind, JobOrder
from domain.summaries import Told
from schemas.jobs import ExtractionJob
from schemas.wire import decode
from storage.summaries import PostgresSummaries
from tests.integration.extraction.scripted import RECORD, ScriptedExtractor, run, says, worker
from tests.integration.storage.stores import Stores, ended, order_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TALK = ended("talk", "I live in Porto.", "The garden is on the north side.", "It has a hedge.", "Good night.")


def following(stores: Stores, *, every: int = 4, broken: bool = False) -> ExtractSession:
    summaries = (Broken if broken else PostgresSummaries)(stores.database, outgoing=stores.outgoing)
    model = ScriptedExtractor(says(("home_city", "Porto")))
    return worker(stores, model, follow_up=FollowUp(summaries=summaries, every=every))


class Broken(PostgresSummaries):
    """Finds the database away when it is to keep something."""

    async def keep(self, order: JobOrder, told: Told, summary: str) -> bool:
        raise StorageUnavailableError("away")


async def remembered(stores: Stores, extract: ExtractSession, talk: EndedConversation) -> list[JobOrder]:
    """Do the job of ``talk``; return the follow-ups that it ordered."""
    await run(extract, order_of(talk, await stores.accept(talk)))
    records = [decode(ExtractionJob, one["value"]) for one in await stores.orders()]
    return [order_of_record(one, RECORD) for one in records if one.kind == "follow_up"]


async def summaries(stores: Stores) -> list[tuple[Any, ...]]:
    rows = await stores.rows("SELECT summary, method, message_count FROM lis.conversation_summaries")
    return [tuple(row.values()) for row in rows]


async def test_a_long_conversation_is_summed_up_once_after_its_commit(stores: Stores) -> None:
    extract = following(stores)
    (order,) = await remembered(stores, extract, TALK)
    before = await summaries(stores)

    await run(extract, order)
    await run(extract, order)

    summary = (
        'User lives in Porto.\n"I live in Porto."\n"The garden is on the north side."\n"It has a hedge."'
    )
    assert (before, await summaries(stores)) == ([], [(summary, "extract", 4)])
    assert (await stores.events()).count("memory.summary.stored") == 1


async def test_a_follow_up_that_fails_leaves_the_facts_and_is_done_again(stores: Stores) -> None:
    (order,) = await remembered(stores, following(stores), TALK)
    facts = await stores.rows("SELECT * FROM lis.memory_facts")

    with pytest.raises(StorageUnavailableError):
        await run(following(stores, broken=True), order)
    after = await stores.rows("SELECT * FROM lis.memory_facts")
    await run(following(stores), order)

    assert after == facts == await stores.rows("SELECT * FROM lis.memory_facts")
    assert len(await summaries(stores)) == 1
    (job,) = await stores.rows("SELECT status, attempts FROM lis.extraction_jobs")
    assert tuple(job.values()) == ("completed", 1)


async def test_a_short_conversation_is_followed_by_nothing(stores: Stores) -> None:
    assert await remembered(stores, following(stores, every=5), TALK) == []


async def test_a_conversation_that_grew_is_summed_up_again(stores: Stores) -> None:
    extract = following(stores)
    (first,) = await remembered(stores, extract, TALK)
    await run(extract, first)
    more = [message.content for message in TALK.messages or ()]
    grown = ended(
        "talk", *more, "Now the hedge is cut.", "The gate is green.", "So is the wall.", "Good night again."
    )
    grown = replace(grown, ended_at=TALK.ended_at + timedelta(hours=1))

    orders = await remembered(stores, extract, grown)
    await run(extract, orders[-1])

    assert [one.kind for one in orders] == [JobKind.FOLLOW_UP] * 2
    assert [count for *_, count in await summaries(stores)] == [8]


async def test_a_worker_that_is_late_with_fewer_messages_changes_nothing(stores: Stores) -> None:
    store = PostgresSummaries(stores.database, outgoing=stores.outgoing)
    (order,) = await remembered(stores, following(stores), TALK)
    told = await store.told(order)
    assert told is not None

    kept = [
        await store.keep(order, replace(told, message_count=count), f"{count} messages")
        for count in (8, 4, 8)
    ]

    assert kept == [True, False, False]
    assert await summaries(stores) == [("8 messages", "extract", 8)]
    assert (await stores.events()).count("memory.summary.stored") == 1


async def test_nobody_is_summed_up_by_the_words_of_another(stores: Stores) -> None:
    (order,) = await remembered(stores, following(stores), TALK)

    await run(following(stores), replace(order, tenant_id="other"))

    assert await summaries(stores) == []
