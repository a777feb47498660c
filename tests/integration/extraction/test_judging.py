"""Judgements by a model, on the real database: asked once, kept, entering through the fold."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from clients.endpoint import JsonEndpoint, joined_url, open_client
from clients.llm.chain import Patience, ProviderChain
from clients.llm.judge import ModelJudge
from clients.llm.openai import CHAT_PATH, OpenAIProvider
from domain.errors import ModelUnavailableError
from domain.extract_session import ExtractSession
from domain.jobs import JobKind, JobOrder
from domain.judging import AskJudge
from domain.memory.questions import Question
from domain.ports import Extractor, Judge, Judged, WindowCandidates
from tests.integration.extraction.scripted import ScriptedExtractor, run, says, worker
from tests.integration.storage.stores import MARCH, Stores, ended, order_of
from tests.support.model_script import Step
from tests.support.scripted_model import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

LATER: Final = MARCH + timedelta(days=7)
TEA: Final = ended("tea", "I like jasmine tea.")
CHAI: Final = ended("chai", "I like chai latte.", at=LATER)
SAYS_TEA: Final = says(("likes", "jasmine tea"))


def says_later(*pairs: tuple[str, str], at: datetime = LATER) -> WindowCandidates:
    said = says(*pairs)
    return replace(said, candidates=tuple(replace(one, said_at=at) for one in said.candidates))


SAYS_CHAI: Final = says_later(("likes", "chai latte"))


class Always:
    """A judge that is reached by nobody, or that leaves everything open."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def judge(self, questions: Sequence[Question]) -> Judged:
        raise self._error


@pytest.fixture
async def model() -> AsyncGenerator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
async def judge(model: ScriptedModel) -> AsyncGenerator[ModelJudge]:
    async with open_client(connections=4) as client:
        endpoint = JsonEndpoint(client=client, url=joined_url(model.url, CHAT_PATH))
        provider = OpenAIProvider(endpoint=endpoint, model="tiny")
        yield ModelJudge(chain=ProviderChain(providers=[provider], patience=Patience(timeout=2, tries=1)))


def judged(verdict: str, text: str | None = None) -> Step:
    return Step.says(json.dumps({"judgements": [{"n": 1, "verdict": verdict, "text": text}]}))


def reading(stores: Stores, extractor: Extractor, judge: Judge) -> ExtractSession:
    # Every pair of a slot is near: which pairs are nominated is not what is tried here.
    ask = AskJudge(judge=judge, gist=lambda _, norm: norm, distance=2.0, nearest=5)
    return worker(stores, extractor, ask_judge=ask)


async def both(stores: Stores, judge: Judge) -> JobOrder:
    """Take in both conversations, one after the other; return the order of the second."""
    await run(reading(stores, ScriptedExtractor(SAYS_TEA), judge), order_of(TEA, await stores.accept(TEA)))
    order = order_of(CHAI, await stores.accept(CHAI))
    await run(reading(stores, ScriptedExtractor(SAYS_CHAI), judge), order)
    return order


async def facts(stores: Stores) -> dict[str, tuple[str, int]]:
    rows = await stores.rows(
        "SELECT fact_value, status, reinforced FROM lis.memory_facts WHERE merged_into IS NULL"
    )
    return {row["fact_value"]: (row["status"], row["reinforced"]) for row in rows}


async def outcome(stores: Stores, order: JobOrder) -> dict[str, Any]:
    found = await stores.rows("SELECT outcome FROM lis.extraction_jobs WHERE job_id = %s", order.job_id)
    result: dict[str, Any] = found[0]["outcome"]
    return result


async def judge_orders(stores: Stores) -> list[Any]:
    return [one for one in await stores.orders() if one["kind"] == "judge"]


@pytest.mark.parametrize(
    ("step", "remembered"),
    [
        (judged("same"), {"chai latte": ("active", 1)}),
        (judged("compatible"), {"jasmine tea": ("active", 0), "chai latte": ("active", 0)}),
        (judged("rivals"), {"jasmine tea": ("superseded", 0), "chai latte": ("active", 0)}),
        (judged("merge", "chai latte and jasmine tea"), {"chai latte and jasmine tea": ("active", 1)}),
        (
            judged("merge", "chai latte, jasmine tea and whisky"),
            {"jasmine tea": ("active", 0), "chai latte": ("active", 0)},
        ),
        (judged("merge", ""), {"jasmine tea": ("active", 0), "chai latte": ("active", 0)}),
        (Step.says("They are the same."), {"jasmine tea": ("active", 0), "chai latte": ("active", 0)}),
        (Step.fails(400), {"jasmine tea": ("active", 0), "chai latte": ("active", 0)}),
    ],
    ids=["same", "compatible", "rivals", "merge", "ungrounded", "empty", "unreadable", "refused"],
)
async def test_a_verdict_enters_through_the_fold_and_what_is_none_changes_nothing(
    stores: Stores, model: ScriptedModel, judge: ModelJudge, step: Step, remembered: dict[str, Any]
) -> None:
    await model.plays(*[step] * 4)

    await both(stores, judge)

    assert await facts(stores) == remembered


async def test_a_pair_is_asked_once_and_its_cost_is_in_the_result(
    stores: Stores, model: ScriptedModel, judge: ModelJudge
) -> None:
    await model.plays(judged("same"))
    order = await both(stores, judge)
    again = ended("again", "I like chai latte, and jasmine tea.", at=LATER + timedelta(days=1))

    both_words = says_later(("likes", "chai latte"), ("likes", "jasmine tea"), at=again.ended_at)
    extractor = ScriptedExtractor(both_words)
    await run(reading(stores, extractor, judge), order_of(again, await stores.accept(again)))

    assert (await model.seen()).calls == 1
    first = await outcome(stores, order)
    assert (first["questions_asked"], first["judgements"], first["model_calls"]) == (1, 1, 2)
    rows = await stores.rows("SELECT verdict, authority, judge FROM lis.judgements")
    assert [tuple(row.values()) for row in rows] == [("same", 2, "openai/tiny")]
    assert await facts(stores) == {"jasmine tea": ("active", 2)}


async def test_the_judge_sees_the_slot_and_two_texts_in_one_order_and_no_times(
    stores: Stores, model: ScriptedModel, judge: ModelJudge
) -> None:
    await both(stores, judge)

    asked = json.loads((await model.seen()).bodies[0])["messages"][1]["content"]
    assert json.loads(asked.splitlines()[1]) == {
        "n": 1,
        "key": "likes",
        "values": ["chai latte", "jasmine tea"],
    }
    assert "2024" not in asked


async def test_the_same_verdict_gives_the_same_memory_in_either_order(
    stores: Stores, model: ScriptedModel, judge: ModelJudge
) -> None:
    await model.plays(judged("rivals"))
    order = order_of(CHAI, await stores.accept(CHAI))
    await run(reading(stores, ScriptedExtractor(SAYS_CHAI), judge), order)

    await run(reading(stores, ScriptedExtractor(SAYS_TEA), judge), order_of(TEA, await stores.accept(TEA)))

    assert await facts(stores) == {"jasmine tea": ("superseded", 0), "chai latte": ("active", 0)}


async def test_what_a_judge_that_was_away_was_not_asked_is_asked_later(
    stores: Stores, model: ScriptedModel, judge: ModelJudge
) -> None:
    away = Always(ModelUnavailableError("away"))
    order = await both(stores, away)
    before, (waiting,) = await facts(stores), await judge_orders(stores)
    later = replace(order, kind=JobKind.JUDGE)

    await run(reading(stores, ScriptedExtractor(SAYS_CHAI), away), later)
    still_away = await judge_orders(stores)
    await model.plays(judged("same"))
    back = reading(stores, ScriptedExtractor(SAYS_CHAI), judge)
    await run(back, later)
    await run(back, later)

    assert before == {"jasmine tea": ("active", 0), "chai latte": ("active", 0)}
    assert (waiting["job_id"], waiting["is_later"]) == (str(order.job_id), True)
    assert len(still_away) == 2
    assert await facts(stores) == {"chai latte": ("active", 1)}
    assert ((await model.seen()).calls, len(await judge_orders(stores))) == (1, 2)
    done = await outcome(stores, order)
    assert (done["questions_asked"], done["judgements"], done["model_calls"]) == (1, 1, 2)
    assert "memory.fact.renamed" in await stores.events() or "memory.fact.reinforced" in await stores.events()


async def test_a_value_that_another_session_says_meanwhile_is_asked_about_afterwards(
    stores: Stores, model: ScriptedModel, judge: ModelJudge
) -> None:
    await model.plays(judged("same"))
    other = order_of(TEA, await stores.accept(TEA))
    overtaking = reading(stores, ScriptedExtractor(SAYS_TEA), judge)

    class Overtaken(Always):
        """Lets the other session be committed between this one's look at what is stored and its commit."""

        async def judge(self, questions: Sequence[Question]) -> Judged:
            await run(overtaking, other)
            return Judged(verdicts={})

    # Two values of its own make this session ask.
    own = says_later(("likes", "chai latte"), ("dislikes", "beer"), ("dislikes", "wine"))
    talk = ended("chai", "I like chai latte. I dislike beer and wine.", at=LATER)
    order = order_of(talk, await stores.accept(talk))
    await run(reading(stores, ScriptedExtractor(own), Overtaken(RuntimeError())), order)
    (owed,) = await judge_orders(stores)
    await model.plays(judged("compatible"), judged("same"))
    await run(reading(stores, ScriptedExtractor(own), judge), replace(order, kind=JobKind.JUDGE))

    assert owed["session_id"] == str(order.session_id)
    asked = json.loads((await model.seen()).bodies[-1])["messages"][1]["content"]
    lines = [json.loads(line)["values"] for line in asked.splitlines()[1:]]
    assert ["chai latte", "jasmine tea"] in lines
