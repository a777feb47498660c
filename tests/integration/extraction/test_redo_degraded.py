"""A session that rules read while the model was away is read by the model when it is back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.redo_degraded import Redone
from storage.degraded_jobs import PostgresDegradedJobs
from tests.integration.extraction.scripted import ScriptedExtractor, run, says, worker
from tests.integration.storage.stores import Stores, ended, order_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TALK = ended("talk", "I live in Porto and I am a nurse.")
AT_ONCE = timedelta(0)


async def values(stores: Stores) -> set[str]:
    rows = await stores.rows("SELECT fact_value FROM lis.memory_facts WHERE status = 'active'")
    return {row["fact_value"] for row in rows}


async def test_what_rules_read_is_read_by_a_model_later_and_takes_its_place(stores: Stores) -> None:
    by_rules = replace(says(("home_city", "Porto")), degraded=True)
    extract = worker(stores, ScriptedExtractor(by_rules, by_rules, says(("job_title", "nurse"))))
    degraded = PostgresDegradedJobs(stores.database, outgoing=stores.outgoing)
    order = order_of(TALK, await stores.accept(TALK))
    await run(extract, order)

    tried = await degraded.order_again(older_than=AT_ONCE, most=5)
    under_way = await degraded.redone(tried)
    await run(extract, order)
    still_away = await degraded.redone(tried)
    again = await degraded.order_again(older_than=AT_ONCE, most=5)
    await run(extract, order)

    assert tried == again == [(order.tenant_id, order.job_id)]
    assert (under_way, still_away) == (Redone.UNDER_WAY, Redone.BY_RULES)
    assert await degraded.redone(again) is Redone.BY_A_MODEL
    assert await values(stores) == {"nurse"}
    assert await degraded.order_again(older_than=AT_ONCE, most=5) == []
    assert [one["topic"] for one in await stores.orders()][1:] == ["extraction.jobs.replay.v1"] * 2


async def test_what_a_model_read_or_what_is_fresh_is_left_alone(stores: Stores) -> None:
    degraded = PostgresDegradedJobs(stores.database, outgoing=stores.outgoing)
    for name, answer in (
        ("model", says(("home_city", "Porto"))),
        ("rules", replace(says(("job_title", "nurse")), degraded=True)),
    ):
        talk = ended(name, "I live in Porto and I am a nurse.")
        await run(worker(stores, ScriptedExtractor(answer)), order_of(talk, await stores.accept(talk)))

    assert await degraded.order_again(older_than=timedelta(minutes=1), most=5) == []
