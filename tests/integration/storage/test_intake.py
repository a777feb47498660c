"""Intake: every conversation once, whatever comes how often."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.arrivals import EndedConversation, Origin, PostedMessage, Verdict
from domain.conversation import UserRef
from domain.errors import ConflictError, InvalidInputError
from domain.jobs import JobStatus
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    GRACE,
    MARCH,
    TENANT,
    Stores,
    candidate,
    ended,
    message,
    order_of,
    session_id,
    somebody,
    words_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


def posted(name: str, position: int, text: str, user: UserRef = ANA) -> PostedMessage:
    return PostedMessage(
        tenant_id=TENANT, user=user, session_id=session_id(name), message=message(position, text)
    )


async def post(stores: Stores, one: PostedMessage) -> None:
    await stores.intake().post(one, words_of(one.message.content, None), grace=GRACE)


async def test_a_new_conversation_leaves_session_messages_job_and_order(stores: Stores) -> None:
    accepted = await stores.accept(ended("s", "I live in Porto", "I have a dog"))

    assert (accepted.verdict, accepted.revision) == (Verdict.ACCEPTED, 1)
    counts = await stores.rows(
        "SELECT (SELECT count(*) FROM lis.sessions) AS sessions,"
        " (SELECT count(*) FROM lis.chat_messages) AS messages,"
        " (SELECT count(*) FROM lis.recall WHERE kind = 1) AS recall,"
        " (SELECT count(*) FROM lis.extraction_jobs WHERE status = 'queued') AS jobs"
    )
    assert dict(counts[0]) == {"sessions": 1, "messages": 2, "recall": 2, "jobs": 1}
    assert await stores.events() == ["memory.job.queued"]
    orders = await stores.orders()
    assert [(one["topic"], one["is_later"]) for one in orders] == [("extraction.jobs.bulk.v1", False)]
    assert stores.wakes


async def test_the_same_conversation_again_changes_nothing(stores: Stores) -> None:
    first = await stores.accept(ended("s", "I live in Porto"))
    again = await stores.accept(ended("s", "I  LIVE in Porto"))

    assert again == replace(first, verdict=Verdict.DUPLICATE)
    assert len(await stores.orders()) == 1


async def test_ten_at_once_of_one_conversation_are_one(stores: Stores) -> None:
    results = await asyncio.gather(*(stores.accept(ended("s", "I live in Porto")) for _ in range(10)))

    assert sorted(one.verdict for one in results) == [Verdict.ACCEPTED] + [Verdict.DUPLICATE] * 9
    assert len(await stores.orders()) == 1


async def test_ten_at_once_in_one_process_share_their_statements(stores: Stores) -> None:
    intake = stores.intake()
    every = [ended(f"s{n}", "I live in Porto", user=somebody()) for n in range(10)]
    results = await asyncio.gather(*(intake.accept(one, {}, grace=GRACE) for one in [*every, *every]))

    assert sum(one.verdict is Verdict.ACCEPTED for one in results) == 10
    assert sum(one.verdict is Verdict.DUPLICATE for one in results) == 10


async def test_more_messages_are_a_new_revision(stores: Stores) -> None:
    await stores.accept(ended("s", "I live in Porto"))
    revised = await stores.accept(ended("s", "I live in Porto", "I have a dog"))

    assert (revised.verdict, revised.revision) == (Verdict.REVISED, 2)
    assert len(await stores.orders()) == 2


async def test_a_later_end_is_a_new_revision_that_replaces_the_messages(stores: Stores) -> None:
    await stores.accept(ended("s", "I live in Porto"))
    revised = await stores.accept(ended("s", "I live in Lyon", at=MARCH + timedelta(days=1)))

    assert revised.verdict is Verdict.REVISED
    found = await stores.rows("SELECT content FROM lis.chat_messages")
    assert [one["content"] for one in found] == ["I live in Lyon"]
    found = await stores.rows("SELECT content FROM lis.recall WHERE kind = 1")
    assert [one["content"] for one in found] == ["I live in Lyon"]


async def test_other_content_without_a_later_end_is_a_conflict_for_a_person_to_see(stores: Stores) -> None:
    first = await stores.remember(ended("s", "I live in Porto"), candidate("home_city", "Porto"))
    conflict = await stores.accept(ended("s", "I live in Lyon"))

    assert conflict.verdict is Verdict.CONFLICT
    assert len(await stores.orders()) == 1
    job = await stores.reads().job(TENANT, job_id=first.job_id, session_id=None)
    assert job is not None
    assert job.status is JobStatus.CONFLICT


async def test_an_empty_conversation_is_gated(stores: Stores) -> None:
    accepted = await stores.accept(ended("s"))

    assert accepted.verdict is Verdict.EMPTY
    job = await stores.reads().job(TENANT, job_id=accepted.job_id, session_id=None)
    assert job is not None
    assert (job.status, job.gate) == (JobStatus.GATED, "empty")
    assert await stores.orders() == []
    assert await stores.events() == ["memory.job.gated"]


async def test_an_end_without_messages_takes_those_that_were_posted(stores: Stores) -> None:
    await post(stores, posted("s", 0, "I live in Porto"))
    await post(stores, posted("s", 1, "I have a dog"))
    claim = await stores.claimed(ended("s", messages=None))

    assert [one.content for one in claim.session.messages] == ["I live in Porto", "I have a dog"]
    recall = await stores.rows("SELECT content FROM lis.recall WHERE kind = 1")
    assert len(recall) == 2


async def test_an_end_before_its_messages_waits_for_them(stores: Stores) -> None:
    waiting = ended("s", messages=None, message_count=2)
    accepted = await stores.accept(waiting)

    assert accepted.verdict is Verdict.WAITING
    assert [one["is_later"] for one in await stores.orders()] == [True]
    assert await stores.jobs().claim(order_of(waiting, accepted), deadline=DEADLINE) is None

    await post(stores, posted("s", 0, "I live in Porto"))
    await stores.run("UPDATE lis.extraction_jobs SET next_attempt_at = now()")
    claim = await stores.jobs().claim(order_of(waiting, accepted), deadline=DEADLINE)

    assert claim is not None
    assert [one.content for one in claim.session.messages] == ["I live in Porto"]
    assert len(await stores.orders()) == 1


async def test_messages_after_the_end_are_one_new_revision_after_the_grace(stores: Stores) -> None:
    await stores.remember(ended("s", "I live in Porto"), candidate("home_city", "Porto"))
    await post(stores, posted("s", 1, "I have a dog"))
    await post(stores, posted("s", 2, "He is called Rex"))
    await post(stores, posted("s", 2, "He is called Rex"))

    job = await stores.reads().job(TENANT, job_id=None, session_id=session_id("s"))
    assert job is not None
    assert (job.status, job.revision) == (JobStatus.QUEUED, 2)
    assert [one["is_later"] for one in await stores.orders()] == [False, True]


@pytest.mark.parametrize("is_late", [False, True])
async def test_the_wording_of_the_end_counts_whether_a_message_was_posted_before_or_after(
    stores: Stores, *, is_late: bool
) -> None:
    other_wording = posted("s", 0, "I live in Leeds")
    if not is_late:
        await post(stores, other_wording)
    await stores.accept(ended("s", "I live in Porto"))
    if is_late:
        await post(stores, other_wording)

    stored = await stores.rows("SELECT content FROM lis.chat_messages")
    job = await stores.reads().job(TENANT, job_id=None, session_id=session_id("s"))
    assert [one["content"] for one in stored] == ["I live in Porto"]
    assert job is not None
    assert job.revision == 1


async def test_one_external_user_is_one_user_however_many_come_at_once(stores: Stores) -> None:
    visitor = UserRef(external_user_id="visitor-7")
    results = await asyncio.gather(
        *(stores.accept(ended(f"s{n}", "I live in Porto", user=visitor)) for n in range(8)),
        post(stores, posted("other", 0, "hello", visitor)),
    )

    assert len({one.user_id for one in results if one is not None}) == 1
    users = await stores.rows("SELECT user_id FROM lis.proxy_users")
    assert len(users) == 1


async def test_a_known_external_user_keeps_the_id_of_the_table(stores: Stores) -> None:
    await stores.run(
        "INSERT INTO lis.proxy_users (tenant_id, external_user_id, user_id) VALUES (%s, 'old', %s)",
        TENANT,
        ANA.user_id,
    )
    accepted = await stores.accept(ended("s", "I live in Porto", user=UserRef(external_user_id="old")))

    assert accepted.user_id == ANA.user_id


async def test_the_plan_of_the_tenant_decides_the_lane(stores: Stores) -> None:
    await stores.run("INSERT INTO lis.tenants (tenant_id, plan) VALUES (%s, 'enterprise')", TENANT)
    await stores.accept(ended("s1", "I live in Porto"))
    await stores.accept(ended("s2", "I live in Porto", origin=Origin.REPLAY))

    topics = [one["topic"] for one in await stores.orders()]
    assert topics == ["extraction.jobs.priority.v1", "extraction.jobs.replay.v1"]


async def test_the_plan_of_another_tenant_decides_nothing(stores: Stores) -> None:
    await stores.run(
        "INSERT INTO lis.tenants (tenant_id, plan) VALUES ('other', 'enterprise'), ('third', 'growth')"
    )
    for tenant in (TENANT, "third", "other"):
        await stores.accept(ended(tenant, "hello", tenant=tenant))

    lanes = [one["topic"].split(".")[2] for one in await stores.orders()]
    assert lanes == ["bulk", "standard", "priority"]


async def test_a_session_of_another_user_is_not_taken_over(stores: Stores) -> None:
    await stores.accept(ended("s", "I live in Porto"))

    with pytest.raises(ConflictError):
        await stores.accept(ended("s", "I live in Lyon", user=somebody()))
    with pytest.raises(ConflictError):
        await post(stores, posted("s", 1, "me too", somebody()))


async def test_what_the_database_cannot_hold_stops_only_itself(stores: Stores) -> None:
    intake = stores.intake()

    async def accept(one: EndedConversation) -> object:
        return (await intake.accept(one, {}, grace=GRACE)).verdict

    good, bad = ended("s1", "I live in Porto"), ended("s2", "nul \x00 byte", user=somebody())
    results = await asyncio.gather(
        accept(good), accept(bad), accept(ended("s3", "x")), return_exceptions=True
    )

    assert [results[0], results[2]] == [Verdict.ACCEPTED, Verdict.ACCEPTED]
    assert isinstance(results[1], InvalidInputError)


async def test_an_end_that_brings_its_messages_waits_for_no_more(stores: Stores) -> None:
    claim = await stores.claimed(ended("s", "I live in Porto", message_count=5))

    assert claim.message_count is None
