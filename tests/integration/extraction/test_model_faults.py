"""Every fault that models and their servers are known for, in each wire format: what became of the job.

None ends as "nothing to remember", none takes anything away, and the calls are bounded.
"""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import httpx
import pytest

from clients.endpoint import JsonEndpoint, joined_url, open_client
from clients.llm.anthropic import MESSAGES_PATH, AnthropicProvider
from clients.llm.chain import Patience, ProviderChain
from clients.llm.extractor import ModelExtractor
from clients.llm.gemini import GeminiProvider, content_path
from clients.llm.generate import GenerateProvider
from clients.llm.openai import CHAT_PATH, OpenAIProvider
from clients.llm.prompt import ExtractionPrompt
from clients.llm.provider import Provider
from domain.memory.vocabulary import builtin_vocabulary
from storage.pool import open_database
from tests.integration.extraction.scripted import run, worker
from tests.integration.storage.stores import MARCH, Stores, candidate, ended, order_of, somebody
from tests.support.model_script import CUTS_THE_STREAM, DROPS_THE_CONNECTION, GENERATE_PATH, HANGS, Step
from tests.support.postgres import PostgresServer
from tests.support.scripted_model import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

MEMORY: Final = {
    "category": "personal_info",
    "fact_key": "home_city",
    "fact_value": "Porto",
    "content": "The user lives in Porto.",
    "importance": 6,
    "confidence": 0.9,
    "memory_type": "long",
    "source_message_ids": ["m0"],
    "source_excerpt": "I live in Porto",
    "reasoning": "said so",
}
WHOLE: Final = json.dumps({"memories": [MEMORY], "nothing_to_extract": False, "extraction_notes": "ok"})
FOREIGN_IDS: Final = WHOLE.replace('"m0"', '"m77"')
REMARK: Final = WHOLE.replace('"said so"', f"null ({'perhaps the user meant ' * 180})")

REMEMBERED: Final = ("completed", None)
FAILED: Final = ("retrying", "unreadable_answer")
WAITS: Final = ("retrying", "upstream_unavailable")
REFUSED: Final = ("dead", "permanent")

# Two questions at most, and three tries a question, in the looser formats of a server too.
MOST_CALLS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a server does to every call, and how the job ends by that."""

    step: Step
    ends: tuple[str, str | None]


FAULTS: Final = {
    "an open fence": Fault(step=Step.says(f"```json\n{WHOLE}"), ends=REMEMBERED),
    "a chatty preface": Fault(
        step=Step.says(f"Sure! Here you are:\n{WHOLE}\nAnything else?"), ends=REMEMBERED
    ),
    "a trailing comma": Fault(step=Step.says(WHOLE.replace('"ok"}', '"ok",}')), ends=REMEMBERED),
    "single quotes": Fault(step=Step.says(WHOLE.replace('"', "'")), ends=REMEMBERED),
    "control characters": Fault(step=Step.says(WHOLE.replace('"ok"', '"o\x01\tk"')), ends=REMEMBERED),
    "a list instead of an object": Fault(step=Step.says(json.dumps([MEMORY])), ends=REMEMBERED),
    "an object instead of a list": Fault(
        step=Step.says(json.dumps({"memories": MEMORY, "nothing_to_extract": False})), ends=REMEMBERED
    ),
    "ids that were not offered": Fault(step=Step.says(FOREIGN_IDS), ends=REMEMBERED),
    "numbers as strings": Fault(step=Step.says(WHOLE.replace("0.9", '"0.9"')), ends=REMEMBERED),
    "4 KB behind null": Fault(step=Step.says(REMARK), ends=REMEMBERED),
    "deliberation before the answer": Fault(
        step=Step.says(f'<think>Maybe {{"memories": []}}?</think>{WHOLE}'), ends=REMEMBERED
    ),
    "an apology": Fault(step=Step.says("I am sorry, I cannot help with that."), ends=FAILED),
    "half an answer": Fault(step=Step.says(WHOLE[:40], finish_reason="length"), ends=FAILED),
    "an empty object": Fault(step=Step.says("{}"), ends=FAILED),
    "no memories and no word that there are none": Fault(step=Step.says('{"memories": []}'), ends=FAILED),
    "an empty body": Fault(step=Step.sends(""), ends=FAILED),
    "a page of HTML": Fault(step=Step.sends("<html>busy</html>"), ends=FAILED),
    "200 with an error inside": Fault(step=Step.sends('{"error": {"message": "overloaded"}}'), ends=WAITS),
    "a stream cut in the middle": Fault(step=CUTS_THE_STREAM, ends=WAITS),
    "a dropped connection": Fault(step=DROPS_THE_CONNECTION, ends=WAITS),
    "429": Fault(step=Step.fails(429), ends=WAITS),
    "429 with Retry-After": Fault(step=Step.fails(429, retry_after="1"), ends=WAITS),
    "503": Fault(step=Step.fails(503), ends=WAITS),
    "401": Fault(step=Step.fails(401), ends=WAITS),
    "an answer after the deadline": Fault(step=HANGS, ends=WAITS),
    "400": Fault(step=Step.fails(400), ends=REFUSED),
}

Make = Callable[[str, httpx.AsyncClient], Provider]


def _openai(url: str, client: httpx.AsyncClient) -> Provider:
    return OpenAIProvider(endpoint=JsonEndpoint(client=client, url=joined_url(url, CHAT_PATH)), model="tiny")


def _generate(url: str, client: httpx.AsyncClient) -> Provider:
    return GenerateProvider(endpoint=JsonEndpoint(client=client, url=url + GENERATE_PATH))


def _anthropic(url: str, client: httpx.AsyncClient) -> Provider:
    endpoint = JsonEndpoint(client=client, url=joined_url(url, MESSAGES_PATH))
    return AnthropicProvider(endpoint=endpoint, model="tiny")


def _gemini(url: str, client: httpx.AsyncClient) -> Provider:
    endpoint = JsonEndpoint(client=client, url=joined_url(url, content_path("tiny")))
    return GeminiProvider(endpoint=endpoint, model="tiny")


FORMATS: Final[dict[str, Make]] = {
    "generate": _generate,
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


@pytest.fixture(scope="module")
async def stores(postgres: PostgresServer, migrated_template: str) -> AsyncGenerator[Stores]:
    """One database for all of them, each with a user of its own."""
    url = postgres.create_database(template=migrated_template)
    async with open_database(url, min_size=1, max_size=2) as opened:
        yield Stores(database=opened)
    postgres.drop_database(url)


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[ScriptedModel]:
    async with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def prompt() -> ExtractionPrompt:
    return ExtractionPrompt(vocabulary=builtin_vocabulary())


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    async with open_client(connections=2) as opened:
        yield opened


@pytest.fixture(params=FORMATS)
def extractor(
    request: pytest.FixtureRequest, model: ScriptedModel, prompt: ExtractionPrompt, client: httpx.AsyncClient
) -> ModelExtractor:
    async def at_once(_seconds: float) -> None:
        return

    provider = FORMATS[request.param](model.url, client)
    chain = ProviderChain(providers=[provider], patience=Patience(timeout=0.4), sleep=at_once)
    return ModelExtractor(chain=chain, prompt=prompt)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_model_is_never_nothing_to_remember(
    stores: Stores, model: ScriptedModel, extractor: ModelExtractor, fault: str
) -> None:
    user, name = somebody(), uuid4().hex
    before = ended(f"{name} before", "I have a cat called Mia.", user=user, at=MARCH.replace(month=1))
    talk = ended(name, "I live in Porto and I am a nurse.", user=user)
    await stores.remember(before, candidate("pet", "a cat called Mia"))
    accepted = await stores.accept(talk)
    await model.plays(*[FAULTS[fault].step] * (2 * MOST_CALLS))
    calls = (await model.seen()).calls

    await run(worker(stores, extractor), order_of(talk, accepted))

    jobs = await stores.rows(
        "SELECT status, error->>'code' AS code FROM lis.extraction_jobs WHERE job_id = %s", accepted.job_id
    )
    facts = await stores.rows(
        "SELECT fact_value FROM lis.memory_facts WHERE user_id = %s AND status = 'active'", user.user_id
    )
    learnt = {"Porto"} if FAULTS[fault].ends == REMEMBERED else set()
    assert (jobs[0]["status"], jobs[0]["code"]) == FAULTS[fault].ends
    assert {row["fact_value"] for row in facts} == {"a cat called Mia", *learnt}
    assert (await model.seen()).calls - calls <= MOST_CALLS
