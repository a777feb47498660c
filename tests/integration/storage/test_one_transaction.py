"""What is told is written with its cause: where the outbox takes nothing, nothing has happened."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, LiteralString

import pytest
from psycopg.errors import CheckViolation

from domain.arrivals import PostedMessage
from domain.jobs import JobError, JobKind, JobOrder, JobOutcome
from domain.outbox import RawRecord
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    GRACE,
    TENANT,
    Stores,
    candidate,
    ended,
    extracted,
    message,
    order_of,
    session_id,
    words_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

Effect = Callable[[], Awaitable[object]]

ERROR: Final = JobError(code="unreadable_answer", message="no provider gave a readable answer")
RECORD: Final = RawRecord(topic="t", partition=0, offset=1, key=b"k", value=b"{", headers=())
TALK: Final = ended("s", "I live in Porto")
STATE: Final[LiteralString] = """
    SELECT (SELECT json_agg(s ORDER BY s.session_id) FROM lis.sessions AS s)::text AS sessions,
           (SELECT json_agg(m ORDER BY m.message_id) FROM lis.chat_messages AS m)::text AS messages,
           (SELECT json_agg(j ORDER BY j.job_id) FROM lis.extraction_jobs AS j)::text AS jobs,
           (SELECT json_agg(a ORDER BY a.assertion_id) FROM lis.assertions AS a)::text AS assertions,
           (SELECT json_agg(f ORDER BY f.fact_id) FROM lis.memory_facts AS f)::text AS facts,
           (SELECT json_agg(v ORDER BY v.number) FROM lis.memory_versions AS v)::text AS versions,
           (SELECT json_agg(r ORDER BY r.id) FROM lis.recall AS r)::text AS recall,
           (SELECT json_agg(t) FROM lis.retractions AS t)::text AS retractions,
           (SELECT json_agg(d) FROM lis.dead_letters AS d)::text AS dead_letters
"""


async def post(stores: Stores, position: int, text: str) -> None:
    one = PostedMessage(
        tenant_id=TENANT, user=ANA, session_id=session_id("s"), message=message(position, text)
    )
    await stores.intake().post(one, words_of(text, None), grace=GRACE)


async def a_new_conversation(stores: Stores) -> Effect:
    return lambda: stores.accept(TALK)


async def a_conversation_whose_messages_came_before(stores: Stores) -> Effect:
    await post(stores, 0, "I live in Porto")
    return lambda: stores.accept(TALK)


async def a_revision(stores: Stores) -> Effect:
    await stores.accept(TALK)
    return lambda: stores.accept(ended("s", "I live in Porto", "I have a dog"))


async def a_message_after_the_end(stores: Stores) -> Effect:
    await stores.remember(TALK, candidate("home_city", "Porto"))
    return lambda: post(stores, 1, "I have a dog")


async def a_claim(stores: Stores) -> Effect:
    order = order_of(TALK, await stores.accept(TALK))
    return lambda: stores.jobs().claim(order, deadline=DEADLINE)


async def a_commit(stores: Stores) -> Effect:
    claim = await stores.claimed(TALK)
    return lambda: stores.jobs().commit(claim, extracted(claim, candidate("pet", "dog")), JobOutcome())


async def a_job_put_back(stores: Stores) -> Effect:
    claim = await stores.claimed(TALK)
    return lambda: stores.jobs().put_back(claim, due_in=timedelta(seconds=60), error=ERROR, counted=True)


async def a_job_gated(stores: Stores) -> Effect:
    claim = await stores.claimed(TALK)
    return lambda: stores.jobs().gate(claim, "empty")


async def a_job_that_dies(stores: Stores) -> Effect:
    claim = await stores.claimed(TALK)
    return lambda: stores.jobs().bury(claim, RECORD, error=ERROR)


async def a_dead_letter(stores: Stores) -> Effect:
    return lambda: stores.dead_letters().bury(RECORD, error_class="invalid", reason="no user", attempts=1)


async def a_delete_by_the_gateway(stores: Stores) -> Effect:
    await stores.remember(TALK, candidate("home_city", "Porto"))
    return lambda: stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")


async def a_fold_after_a_delete(stores: Stores) -> Effect:
    claim = await stores.claimed(TALK)
    job = await stores.jobs().commit(claim, extracted(claim, candidate("home_city", "Porto")), JobOutcome())
    await stores.run("UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()")
    order = JobOrder(
        kind=JobKind.FOLD,
        tenant_id=TENANT,
        user_id=job.user_id,
        avatar_id=job.avatar_id,
        job_id=job.job_id,
    )
    return lambda: stores.jobs().refold(order)


@pytest.mark.parametrize(
    "prepare",
    [
        a_new_conversation,
        a_conversation_whose_messages_came_before,
        a_revision,
        a_message_after_the_end,
        a_claim,
        a_commit,
        a_job_put_back,
        a_job_gated,
        a_job_that_dies,
        a_dead_letter,
        a_delete_by_the_gateway,
        a_fold_after_a_delete,
    ],
)
async def test_what_cannot_be_told_has_not_happened(
    stores: Stores, prepare: Callable[[Stores], Awaitable[Effect]]
) -> None:
    effect = await prepare(stores)
    before = await stores.rows(STATE)

    await stores.run("ALTER TABLE lis.outbox ADD CONSTRAINT takes_nothing CHECK (false) NOT VALID")
    with pytest.raises(CheckViolation):
        await effect()
    after_refusal = await stores.rows(STATE)
    await stores.run("ALTER TABLE lis.outbox DROP CONSTRAINT takes_nothing")
    await effect()

    assert after_refusal == before
    assert await stores.rows(STATE) != before
