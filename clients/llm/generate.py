"""The plain endpoint: a prompt goes in, a text comes back under one of the usual names."""

import json
from collections.abc import Mapping
from typing import Final

from clients.endpoint import EndpointRefusedError, JsonEndpoint
from clients.llm.provider import Completion, Request
from clients.llm.wire import call, count, decoded, refuse_error, table
from domain.errors import ModelRefusedError, UnreadableAnswerError

_TEXTS: Final = (
    "text", "response", "generated_text", "output", "completion", "content", "answer", "result", "message",
)  # fmt: skip
_MAX_DEPTH: Final = 3
_ANSWER_FIELDS: Final = ("memories", "nothing_to_extract", "judgements", "entities")


class GenerateProvider:
    """Posts ``{prompt, temperature, max_tokens}`` and finds the text in the answer."""

    def __init__(self, *, endpoint: JsonEndpoint, name: str = "generate") -> None:
        self._endpoint = endpoint
        self._name = name

    @property
    def name(self) -> str:
        """The name in settings, logs and provenance."""
        return self._name

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        """Return the answer to ``request``.

        Raises:
            ProviderBusyError: no answer.
            UnreadableAnswerError: an answer without a text.
            ModelRefusedError: the server says that the request itself is wrong.
        """
        payload = {
            "prompt": f"{request.fixed}\n\n{request.varying}",
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        try:
            body = await call(self._endpoint, payload, timeout=timeout)
        except EndpointRefusedError as exc:
            raise ModelRefusedError(str(exc)) from exc
        return self._read(body)

    def _read(self, body: bytes) -> Completion:
        envelope = _streamed(body) or decoded(body, self._name)
        fields = table(envelope)
        refuse_error(fields, self._name)
        if any(name in fields for name in _ANSWER_FIELDS):
            text = json.dumps(fields, ensure_ascii=False)
        else:
            text = _text(envelope, depth=0)
        if not text.strip():
            raise UnreadableAnswerError(f"{self._name} answered without a text")
        usage = table(fields.get("usage"))
        return Completion(
            text=text,
            tokens_in=count(usage.get("prompt_tokens", fields.get("prompt_eval_count"))),
            tokens_out=count(usage.get("completion_tokens", fields.get("eval_count"))),
            cut=_is_cut(fields),
        )


def _is_cut(fields: Mapping[str, object]) -> bool:
    reasons = (fields.get("finish_reason"), fields.get("done_reason"), fields.get("stop_reason"))
    return any(reason in ("length", "max_tokens") for reason in reasons)


def _text(value: object, *, depth: int) -> str:
    """Return the text of an answer: itself, or what it holds under a usual name, some levels down."""
    if isinstance(value, str):
        return value
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return _text(value[0], depth=depth + 1) if value else ""
    fields = table(value)
    names = (*_TEXTS, "choices", "results", "data")
    return next((text for name in names if (text := _text(fields.get(name), depth=depth + 1)).strip()), "")


def _streamed(body: bytes) -> Mapping[str, object] | None:
    """Join an answer that came as one object a line; None where it did not, or where its end is missing."""
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines[1:]:
        return None
    try:
        parts = [table(json.loads(line)) for line in lines]
    except (ValueError, RecursionError):
        return None
    if parts[-1].get("done") is not True:
        return None
    texts = (part.get("response") for part in parts)
    return {**parts[-1], "response": "".join(text for text in texts if isinstance(text, str))}
