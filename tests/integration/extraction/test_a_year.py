"""A year of one user, through intake and extraction by rules: the memory is the one that the story tells."""

import random
from typing import Final, LiteralString

import pytest

from clients.language import FastTextLanguageGuesser
from clients.stemming import SnowballStemmer
from consumers.translation import order_of
from domain.memory.gists import Gists
from domain.memory.timeline import Rules
from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.extractor import RuleExtractor
from domain.rules.own_rules import OwnRules
from schemas.jobs import ExtractionJob
from schemas.wire import decode
from tests.integration.extraction.scripted import RECORD, run, worker
from tests.integration.extraction.year import Line, Period, Year, a_year
from tests.integration.storage.stores import Stores

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_FACTS: Final[LiteralString] = """
    SELECT split_part(slot, '|', 1) AS key, norm, mode, status,
           (SELECT array_agg(lower(one) ORDER BY one) FROM unnest(valid) AS one) AS starts,
           (SELECT array_agg(upper(one) ORDER BY one) FROM unnest(valid) AS one) AS ends
      FROM lis.memory_facts
"""


async def _play(stores: Stores, year: Year, *, shuffled_by: int | None) -> None:
    """Take in the conversations, in their order or in any and each twice, and do all that is ordered."""
    rules = RuleExtractor(
        vocabulary=builtin_vocabulary(), languages=FastTextLanguageGuesser(), rules=OwnRules()
    )
    extract = worker(stores, rules, rules=Rules(gist=Gists(SnowballStemmer())))
    arrivals = list(year.conversations)
    if shuffled_by is not None:
        arrivals += arrivals
        random.Random(shuffled_by).shuffle(arrivals)  # noqa: S311 - an order
    for conversation in arrivals:
        await stores.accept(conversation)
    rows = await stores.rows("SELECT value FROM lis.outbox WHERE topic LIKE 'extraction.jobs.%%' ORDER BY id")
    for row in rows:
        await run(extract, order_of(decode(ExtractionJob, row["value"]), RECORD))


async def _remembered(stores: Stores) -> dict[Line, list[Period]]:
    rows = await stores.rows(_FACTS)
    assert all((row["status"] == "active") == (row["ends"][-1] is None) for row in rows)
    found: dict[Line, list[Period]] = {}
    for row in rows:
        line = (row["key"], row["norm"].rpartition(" ")[2], row["mode"])
        # Two facts of one line would be two memories of one thing.
        assert line not in found
        found[line] = list(zip(row["starts"], row["ends"], strict=True))
    return found


def _told(year: Year) -> dict[Line, list[Period]]:
    return {
        (key, value.casefold(), mode): periods
        for (key, value, mode), periods in year.periods.items()
        if periods
    }


@pytest.mark.parametrize("shuffled_by", [None, 1], ids=["as it happened", "in any order, each twice"])
@pytest.mark.parametrize("seed", [2024, 7])
async def test_a_year_is_remembered_as_it_was_told(
    stores: Stores, seed: int, shuffled_by: int | None
) -> None:
    year = a_year(seed)
    # A story that does not move, return and flip would prove nothing.
    assert max(map(len, year.periods.values())) > 5
    assert {mode for _, _, mode in year.periods} == {"holds", "denies"}

    await _play(stores, year, shuffled_by=shuffled_by)

    assert await _remembered(stores) == _told(year)
    statuses = await stores.rows("SELECT status, count(*) AS number FROM lis.extraction_jobs GROUP BY status")
    assert [(row["status"], row["number"]) for row in statuses] == [("completed", 200)]
    assert await stores.rows("SELECT 1 AS one FROM lis.pending_candidates") == []
