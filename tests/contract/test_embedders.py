"""Every embedder keeps the same contract, the HTTP ones against a server on a real socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

import numpy as np
import pytest

from clients.embeddings.hashing import HashingEmbedder
from clients.embeddings.local import USE_MULTILINGUAL, LocalEmbedder
from clients.embeddings.openai import EMBEDDINGS_PATH, OpenAIEmbedder
from clients.embeddings.remote import RemoteEmbedder
from clients.embeddings.tei import EMBED_PATH, TeiEmbedder
from clients.endpoint import JsonEndpoint, joined_url, open_client
from domain.errors import EmbedderUnavailableError
from domain.ports import Embedder, EmbedderInfo
from tests.support.model_script import CUTS_THE_STREAM, DROPS_THE_CONNECTION, HANGS, Step
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

INFO = EmbedderInfo(model="served", dimensions=512, near_duplicate_distance=0.1, max_chars=100)
TEXTS = ["The user lives in Porto", "我住在上海", ""]


class RunnableEmbedder(Embedder, Protocol):
    """An embedder with its life cycle."""

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


@pytest.fixture(scope="module", params=["local", "hashing", "tei", "openai"])
async def embedder(request: pytest.FixtureRequest) -> AsyncGenerator[RunnableEmbedder]:
    async with AsyncExitStack() as stack:
        built: RunnableEmbedder
        match request.param:
            case "local":
                built = LocalEmbedder()
            case "hashing":
                built = HashingEmbedder()
            case kind:
                model = await stack.enter_async_context(ScriptedModel())
                client = await stack.enter_async_context(open_client(connections=4))
                path = EMBED_PATH if kind == "tei" else EMBEDDINGS_PATH
                endpoint = JsonEndpoint(client=client, url=joined_url(model.url, path), timeout=20)
                built = (TeiEmbedder if kind == "tei" else OpenAIEmbedder)(endpoint=endpoint, info=INFO)
        await built.start()
        yield built
        await built.aclose()


def numbers(vector: bytes) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(vector, dtype="<f2").astype(np.float32)


async def test_each_text_has_a_vector_of_length_one(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)

    assert len(vectors) == len(TEXTS)
    for vector in vectors:
        assert len(vector) == 2 * embedder.info.dimensions
        assert np.linalg.norm(numbers(vector)) == pytest.approx(1, abs=0.01)


async def test_the_same_text_has_the_same_vector_whoever_stands_beside_it(embedder: Embedder) -> None:
    (alone,) = await embedder.embed(TEXTS[:1])
    beside = await embedder.embed([*TEXTS[1:], TEXTS[0]])

    assert float(numbers(alone) @ numbers(beside[-1])) == pytest.approx(1, abs=0.002)


async def test_different_texts_are_told_apart(embedder: Embedder) -> None:
    one, other = await embedder.embed(["I live in Porto", "My goal is to read more books"])

    assert float(numbers(one) @ numbers(other)) < 0.9


async def test_no_text_gives_no_vector(embedder: Embedder) -> None:
    assert await embedder.embed([]) == []


@pytest.mark.parametrize("text", ["\ud83d lone", "\udc00", "\x00", "a" * 200_000, "😀" * 50, "\u202e\u0000"])
async def test_odd_text_is_embedded_like_any_other(embedder: Embedder, text: str) -> None:
    (vector,) = await embedder.embed([text])

    assert np.isfinite(numbers(vector)).all()


async def test_what_is_asked_at_once_comes_back_to_the_one_who_asked(embedder: Embedder) -> None:
    texts = [f"fact number {number} {'x' * number}" for number in range(30)]
    (first,), (last,) = await embedder.embed(texts[:1]), await embedder.embed(texts[-1:])

    answers = await asyncio.gather(*(embedder.embed([text]) for text in texts))

    assert float(numbers(answers[0][0]) @ numbers(first)) == pytest.approx(1, abs=0.002)
    assert float(numbers(answers[-1][0]) @ numbers(last)) == pytest.approx(1, abs=0.002)


async def test_many_texts_at_once_keep_their_order(embedder: Embedder) -> None:
    texts = [f"{'y' * number} text" for number in range(70)]
    vectors = await embedder.embed(texts)
    (last,) = await embedder.embed(texts[-1:])

    assert len(vectors) == 70
    assert float(numbers(vectors[-1]) @ numbers(last)) == pytest.approx(1, abs=0.002)


def test_the_default_embedder_is_known_by_its_model_and_dimensions() -> None:
    assert (USE_MULTILINGUAL.dimensions, USE_MULTILINGUAL.near_duplicate_distance) == (512, 0.12)


@pytest.mark.parametrize("kind", [TeiEmbedder, OpenAIEmbedder])
@pytest.mark.parametrize(
    "step",
    [
        *map(
            Step.sends, ["", "{}", "[]", "[[1, 2]]", "[null]", '{"data": [{"index": 0}]}', '{"error": "x"}']
        ),
        Step.sends("[[" + "NaN," * 511 + "1]]"),
        Step.fails(401),
        Step.fails(413),
        HANGS,
    ],
)
async def test_an_answer_without_the_vectors_is_an_outage(kind: type[RemoteEmbedder], step: Step) -> None:
    async with ScriptedModel(steps=[step]) as model, open_client(connections=1) as client:
        endpoint = JsonEndpoint(
            client=client, url=joined_url(model.url, EMBED_PATH), timeout=0.3 if step == HANGS else 20
        )
        with pytest.raises(EmbedderUnavailableError):
            await kind(endpoint=endpoint, info=INFO).embed(["text"])


@pytest.mark.parametrize("step", [Step.fails(503), Step.fails(429), CUTS_THE_STREAM, DROPS_THE_CONNECTION])
async def test_a_blip_of_the_server_is_got_over(step: Step) -> None:
    async with ScriptedModel(steps=[step]) as model, open_client(connections=1) as client:
        endpoint = JsonEndpoint(client=client, url=joined_url(model.url, EMBED_PATH), timeout=20)

        assert len(await TeiEmbedder(endpoint=endpoint, info=INFO).embed(["text"])) == 1


async def test_a_server_of_another_dimension_does_not_start() -> None:
    async with ScriptedModel(dimensions=384) as model, open_client(connections=1) as client:
        endpoint = JsonEndpoint(client=client, url=joined_url(model.url, EMBED_PATH), timeout=20)
        with pytest.raises(EmbedderUnavailableError, match="384"):
            await TeiEmbedder(endpoint=endpoint, info=INFO).start()


async def test_a_prefix_goes_before_each_text() -> None:
    async with ScriptedModel() as model, open_client(connections=1) as client:
        endpoint = JsonEndpoint(client=client, url=joined_url(model.url, EMBED_PATH), timeout=20)
        cut = replace(INFO, max_chars=4)

        await TeiEmbedder(endpoint=endpoint, info=cut, prefix="query: ").embed(["abcdef"])

        assert '"query: abcd"' in (await model.seen()).bodies[0]
