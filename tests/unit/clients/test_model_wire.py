"""Every fault that a model server is known for is a failure with a name, over a real socket."""

import json
from collections.abc import AsyncGenerator

import httpx
import pytest

from clients.endpoint import JsonEndpoint, joined_url, open_client, seconds_of
from clients.llm import anthropic, gemini
from clients.llm.anthropic import MESSAGES_PATH, AnthropicProvider
from clients.llm.gemini import GeminiProvider, content_path
from clients.llm.generate import GenerateProvider
from clients.llm.openai import CHAT_PATH, AnswerFormat, OpenAIProvider
from clients.llm.provider import Provider, ProviderBusyError, Request
from domain.errors import ModelRefusedError, UnreadableAnswerError
from tests.support.model_script import CUTS_THE_STREAM, DROPS_THE_CONNECTION, GENERATE_PATH, HANGS, Step
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

TOKEN = "t0ken"  # noqa: S105 - of no real server
QUESTION = Request(fixed="Read this.", varying="Hello", schema={"type": "object"})


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[ScriptedModel]:
    async with ScriptedModel() as running:
        yield running


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    async with open_client(connections=4) as opened:
        yield opened


@pytest.fixture(params=["openai", "generate", "anthropic", "gemini"])
def provider(request: pytest.FixtureRequest, model: ScriptedModel, client: httpx.AsyncClient) -> Provider:
    def endpoint(path: str, key_header: str) -> JsonEndpoint:
        return JsonEndpoint(
            client=client, url=joined_url(model.url, path), headers={key_header: TOKEN}, name=request.param
        )

    match request.param:
        case "openai":
            return chat(model, client)
        case "anthropic":
            return AnthropicProvider(endpoint=endpoint(MESSAGES_PATH, anthropic.KEY_HEADER), model="tiny")
        case "gemini":
            return GeminiProvider(endpoint=endpoint(content_path("tiny"), gemini.KEY_HEADER), model="tiny")
        case _:
            url = model.url + GENERATE_PATH
            return GenerateProvider(
                endpoint=JsonEndpoint(client=client, url=url, token=TOKEN, name="generate")
            )


def chat(
    model: ScriptedModel, client: httpx.AsyncClient, wanted: AnswerFormat = AnswerFormat.JSON_SCHEMA
) -> OpenAIProvider:
    endpoint = JsonEndpoint(client=client, url=joined_url(model.url, CHAT_PATH), token=TOKEN, name="openai")
    return OpenAIProvider(endpoint=endpoint, model="tiny", answer_format=wanted)


async def test_the_text_of_the_model_comes_through(provider: Provider, model: ScriptedModel) -> None:
    await model.plays(Step.says("hello 你好"))

    completion = await provider.complete(QUESTION, timeout=20)

    assert completion.text == "hello 你好"
    assert not completion.cut
    assert (await model.seen()).tokens[-1] == TOKEN


async def test_an_answer_without_room_is_marked(provider: Provider, model: ScriptedModel) -> None:
    await model.plays(Step.says('{"memories": [', finish_reason="length"))

    assert (await provider.complete(QUESTION, timeout=20)).cut


@pytest.mark.parametrize(
    ("step", "again", "retry_after"),
    [
        (Step.fails(429), True, None),
        (Step.fails(429, retry_after="7"), True, 7.0),
        (Step.fails(500), True, None),
        (Step.fails(503, retry_after="soon"), True, None),
        (Step.fails(401), False, None),
        (Step.fails(404), False, None),
        (HANGS, False, None),
        (CUTS_THE_STREAM, True, None),
        (DROPS_THE_CONNECTION, True, None),
        (Step.sends('{"error": {"code": 529, "message": "overloaded"}}'), True, None),
    ],
)
async def test_an_outage_is_told_from_an_answer(
    provider: Provider, model: ScriptedModel, step: Step, again: bool, retry_after: float | None
) -> None:
    await model.plays(step)

    with pytest.raises(ProviderBusyError) as caught:
        await provider.complete(QUESTION, timeout=0.3 if step == HANGS else 20)

    assert (caught.value.again, caught.value.retry_after) == (again, retry_after)


@pytest.mark.parametrize(
    "body", ["", "  ", "<html>", '{"choices": [', "[]", "{}", '{"choices": []}', "null", "7"]
)
async def test_an_answer_without_a_text_is_unreadable(
    provider: Provider, model: ScriptedModel, body: str
) -> None:
    await model.plays(Step.sends(body))

    with pytest.raises(UnreadableAnswerError):
        await provider.complete(QUESTION, timeout=20)


async def test_a_refusal_is_for_good(provider: Provider, model: ScriptedModel) -> None:
    await model.plays(*[Step.fails(400)] * 3)

    with pytest.raises(ModelRefusedError):
        await provider.complete(QUESTION, timeout=20)


async def test_a_server_that_is_not_there_is_an_outage(client: httpx.AsyncClient) -> None:
    endpoint = JsonEndpoint(client=client, url="http://127.0.0.1:9/v1/chat/completions")

    with pytest.raises(ProviderBusyError):
        await OpenAIProvider(endpoint=endpoint, model="m").complete(QUESTION, timeout=20)


async def test_no_error_repeats_what_was_said_or_the_token(provider: Provider, model: ScriptedModel) -> None:
    await model.plays(*[Step.fails(400)] * 3)

    with pytest.raises(ModelRefusedError) as caught:
        await provider.complete(Request(fixed="f", varying="my secret words"), timeout=20)

    assert "secret" not in str(caught.value)
    assert TOKEN not in str(caught.value)


async def test_a_refused_answer_format_is_loosened_and_kept(client: httpx.AsyncClient) -> None:
    async with ScriptedModel(refused_formats=["json_schema"]) as strict:
        provider = chat(strict, client)

        await provider.complete(QUESTION, timeout=20)
        await provider.complete(QUESTION, timeout=20)

        formats = [json.loads(body)["response_format"]["type"] for body in (await strict.seen()).bodies]
    assert formats == ["json_schema", "json_object", "json_object"]


async def test_after_a_format_has_worked_a_refusal_is_about_the_request(
    model: ScriptedModel, client: httpx.AsyncClient
) -> None:
    provider = chat(model, client)
    await model.plays(Step.says("fine"), Step.fails(400))
    before = (await model.seen()).calls

    await provider.complete(QUESTION, timeout=20)
    with pytest.raises(ModelRefusedError):
        await provider.complete(QUESTION, timeout=20)

    assert (await model.seen()).calls == before + 2


async def test_a_model_that_declines_refuses(model: ScriptedModel, client: httpx.AsyncClient) -> None:
    choice = {"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}
    await model.plays(Step.sends(json.dumps({"choices": [choice]})))

    with pytest.raises(ModelRefusedError):
        await chat(model, client).complete(QUESTION, timeout=20)


async def test_text_in_parts_is_joined_and_usage_is_counted(
    model: ScriptedModel, client: httpx.AsyncClient
) -> None:
    message = {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}
    usage = {"prompt_tokens": 12, "completion_tokens": "many"}
    await model.plays(Step.sends(json.dumps({"choices": [{"message": message}], "usage": usage})))

    completion = await chat(model, client).complete(QUESTION, timeout=20)

    assert (completion.text, completion.tokens_in, completion.tokens_out) == ("ab", 12, 0)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"text": "a"}', "a"),
        ('{"response": "a", "done": true}', "a"),
        ('[{"generated_text": "a"}]', "a"),
        ('{"choices": [{"text": "a"}]}', "a"),
        ('{"choices": [{"message": {"content": "a"}}]}', "a"),
        ('{"data": {"output": "a"}}', "a"),
        ('"a"', "a"),
        ('{"response": "a", "done": false}\n{"response": "b", "done": true}', "ab"),
        ('{"memories": [], "nothing_to_extract": true}', '{"memories": [], "nothing_to_extract": true}'),
    ],
)
async def test_the_plain_endpoint_answers_under_any_usual_name(
    model: ScriptedModel, client: httpx.AsyncClient, body: str, text: str
) -> None:
    await model.plays(Step.sends(body))
    endpoint = JsonEndpoint(client=client, url=model.url + GENERATE_PATH)

    assert (await GenerateProvider(endpoint=endpoint).complete(QUESTION, timeout=20)).text == text


async def test_a_stream_of_lines_without_its_end_is_unreadable(
    model: ScriptedModel, client: httpx.AsyncClient
) -> None:
    await model.plays(Step.sends('{"response": "a"}\n{"response": "b"}'))
    endpoint = JsonEndpoint(client=client, url=model.url + GENERATE_PATH)

    with pytest.raises(UnreadableAnswerError):
        await GenerateProvider(endpoint=endpoint).complete(QUESTION, timeout=20)


async def test_the_plain_endpoint_gets_the_prompt_in_one_piece(
    model: ScriptedModel, client: httpx.AsyncClient
) -> None:
    await model.plays(Step.says("x"))
    endpoint = JsonEndpoint(client=client, url=model.url + GENERATE_PATH)
    async with ScriptedModel() as fresh:
        endpoint = JsonEndpoint(client=client, url=fresh.url + GENERATE_PATH)
        await GenerateProvider(endpoint=endpoint).complete(QUESTION, timeout=20)
        (body,) = (await fresh.seen()).bodies

    assert json.loads(body) == {"prompt": "Read this.\n\nHello", "temperature": 0.1, "max_tokens": 1024}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
    ],
)
def test_a_base_address_may_be_given_in_any_length(base: str, url: str) -> None:
    assert joined_url(base, CHAT_PATH) == url


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("3", 3.0), ("0.5", 0.5), ("-2", 0.0), ("nonsense", None), ("nan", None), ("inf", None)],
)
def test_retry_after_is_read_or_ignored(header: str | None, seconds: float | None) -> None:
    assert seconds_of(header) == seconds


def test_retry_after_may_be_a_date_gone_by() -> None:
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


@pytest.mark.parametrize("refused", ["temperature", "output_config"])
async def test_what_a_model_of_anthropic_refuses_is_left_out(client: httpx.AsyncClient, refused: str) -> None:
    async with ScriptedModel(refused_formats=[refused]) as strict:
        endpoint = JsonEndpoint(client=client, url=joined_url(strict.url, MESSAGES_PATH), name="anthropic")
        provider = AnthropicProvider(endpoint=endpoint, model="tiny")

        await provider.complete(QUESTION, timeout=20)
        await provider.complete(QUESTION, timeout=20)

        asked = [json.loads(body) for body in (await strict.seen()).bodies]
    assert refused not in asked[-1]
    assert len(asked) == (3 if refused == "temperature" else 4)


async def test_a_looser_format_is_asked_of_gemini_and_kept(client: httpx.AsyncClient) -> None:
    async with ScriptedModel(refused_formats=["responseJsonSchema"]) as strict:
        endpoint = JsonEndpoint(
            client=client, url=joined_url(strict.url, content_path("tiny")), name="gemini"
        )
        provider = GeminiProvider(endpoint=endpoint, model="tiny")

        await provider.complete(QUESTION, timeout=20)
        await provider.complete(QUESTION, timeout=20)

        asked = [json.loads(body)["generationConfig"] for body in (await strict.seen()).bodies]
    assert ["responseJsonSchema" in one for one in asked] == [True, False, False]
    assert all(one["responseMimeType"] == "application/json" for one in asked)


@pytest.mark.parametrize(
    "body",
    [
        '{"promptFeedback": {"blockReason": "SAFETY"}}',
        '{"candidates": [{"finishReason": "PROHIBITED_CONTENT", "content": {"parts": [{"text": "a"}]}}]}',
    ],
)
async def test_what_gemini_blocks_is_refused(
    model: ScriptedModel, client: httpx.AsyncClient, body: str
) -> None:
    await model.plays(Step.sends(body))
    endpoint = JsonEndpoint(client=client, url=joined_url(model.url, content_path("tiny")), name="gemini")

    with pytest.raises(ModelRefusedError):
        await GeminiProvider(endpoint=endpoint, model="tiny").complete(QUESTION, timeout=20)


async def test_thoughts_are_no_part_of_an_answer(model: ScriptedModel, client: httpx.AsyncClient) -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "a"}, {"text": "b"}]
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 5}
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage}
    await model.plays(Step.sends(json.dumps(body)))
    endpoint = JsonEndpoint(client=client, url=joined_url(model.url, content_path("tiny")), name="gemini")

    completion = await GeminiProvider(endpoint=endpoint, model="tiny").complete(QUESTION, timeout=20)

    assert (completion.text, completion.tokens_in, completion.tokens_out) == ("ab", 3, 7)


async def test_a_refusal_of_anthropic_and_its_cached_tokens_are_read(
    model: ScriptedModel, client: httpx.AsyncClient
) -> None:
    endpoint = JsonEndpoint(client=client, url=joined_url(model.url, MESSAGES_PATH), name="anthropic")
    provider = AnthropicProvider(endpoint=endpoint, model="tiny")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 4}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]
    await model.plays(
        Step.sends(json.dumps({"content": content, "stop_reason": "end_turn", "usage": usage})),
        Step.sends('{"content": [], "stop_reason": "refusal"}'),
    )

    completion = await provider.complete(QUESTION, timeout=20)
    with pytest.raises(ModelRefusedError):
        await provider.complete(QUESTION, timeout=20)

    assert (completion.text, completion.tokens_in, completion.tokens_out) == ("a", 910, 4)
