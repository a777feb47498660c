"""Thirty sessions in any order, any number of times, over workers that die: the same memory."""

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, LiteralString

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from storage.pool import open_database
from tests.integration.extraction.histories import History, histories
from tests.integration.extraction.playing import Play, Worker, forget
from tests.integration.storage.stores import Stores

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_WORKERS: Final = 3
# Who does not wait for the disk has time for more histories; no server is killed here.
_HASTY: Final = "options=-csynchronous_commit%3Doff"
_IS_QUICK: Final = settings.get_current_profile_name() == "quick"
# All columns but what the moment of writing decides, and the number of changes on the way.
_MEMORY: Final[Mapping[str, LiteralString]] = {
    "facts": """
        SELECT to_jsonb(f) - '{created_at,updated_at,last_seen_at,deleted_at,revision}'::text[]
               || jsonb_build_object('is_deleted', deleted_at IS NOT NULL) AS one
          FROM lis.memory_facts AS f ORDER BY user_id, tenant_id, avatar_id, fact_id""",
    "pending": """
        SELECT to_jsonb(p) - '{created_at,updated_at}'::text[] AS one
          FROM lis.pending_candidates AS p ORDER BY user_id, tenant_id, avatar_id, candidate_id""",
    "clarifications": """
        SELECT to_jsonb(c) - '{created_at,opened_at}'::text[] AS one
          FROM lis.clarifications AS c ORDER BY user_id, tenant_id, avatar_id, clarification_id""",
    "notes": """
        SELECT to_jsonb(n) - '{created_at,found_at}'::text[] AS one
          FROM lis.contradiction_notes AS n ORDER BY user_id, tenant_id, avatar_id, older_fact, newer_fact""",
    "assertions": """
        SELECT to_jsonb(a) - 'recorded_at' AS one
          FROM lis.assertions AS a ORDER BY user_id, tenant_id, avatar_id, assertion_id""",
    "found": """
        SELECT to_jsonb(r) - '{created_at,updated_at}'::text[] AS one
          FROM lis.recall AS r ORDER BY user_id, tenant_id, avatar_id, id""",
    "jobs": """
        SELECT jsonb_build_object('job', job_id, 'status', status, 'gate', gate, 'error', error) AS one
          FROM lis.extraction_jobs ORDER BY tenant_id, job_id""",
}
# The newest version of a fact that is there is its row; of one that is not, the news that it went.
_OUTDATED: Final[LiteralString] = """
SELECT coalesce(f.fact_id, v.fact_id) AS fact_id, v.change, f.status
  FROM lis.memory_facts AS f
  FULL JOIN (SELECT DISTINCT ON (user_id, tenant_id, avatar_id, fact_id) *
               FROM lis.memory_versions
              ORDER BY user_id, tenant_id, avatar_id, fact_id, number DESC) AS v
    ON (f.user_id, f.tenant_id, f.avatar_id, f.fact_id) = (v.user_id, v.tenant_id, v.avatar_id, v.fact_id)
 WHERE CASE WHEN f.fact_id IS NULL THEN v.change NOT IN ('erased', 'renamed')
            ELSE to_jsonb(f) - 'last_seen_at' IS DISTINCT FROM
                 to_jsonb(jsonb_populate_record(NULL::lis.memory_facts, v.fact)) - 'last_seen_at'
       END"""


@pytest.fixture
async def workers(migrated_url: str) -> AsyncGenerator[list[Worker]]:
    """Workers with connections of their own, on one database."""
    url = f"{migrated_url}{'&' if '?' in migrated_url else '?'}{_HASTY}"
    async with AsyncExitStack() as stack:
        yield [
            Worker(
                Stores(database=await stack.enter_async_context(open_database(url, max_size=4))),
                f"worker {number}",
            )
            for number in range(_WORKERS)
        ]


@settings(
    max_examples=10 if _IS_QUICK else 300,
    # To make thirty sessions simpler takes minutes.
    phases=[one for one in Phase if one is not Phase.shrink or not _IS_QUICK],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(histories(), st.integers(0, 1_000_000))
async def test_any_order_repetition_and_partition_of_the_sessions_gives_the_same_memory(
    workers: list[Worker], history: History, chance: int
) -> None:
    stores = workers[0].stores
    await forget(stores)
    met = await Play(workers[:1]).in_order(history)
    expected = await _memory(stores)

    await forget(stores)
    await Play(workers).disturbed(history, met, random.Random(chance))  # noqa: S311
    found = await _memory(stores)

    for kind in _MEMORY:
        event(f"{kind}: {'some' if expected[kind] else 'none'}")
        assert found[kind] == expected[kind], kind
    assert await stores.rows(_OUTDATED) == []


async def _memory(stores: Stores) -> dict[str, list[Any]]:
    return {kind: [row["one"] for row in await stores.rows(query)] for kind, query in _MEMORY.items()}
