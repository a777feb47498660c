"""Chat completions, as OpenAI and every compatible server speak them."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from clients.endpoint import EndpointRefusedError, JsonEndpoint
from clients.llm.provider import Completion, Request
from clients.llm.wire import call, count, decoded, refuse_error, table
from domain.errors import ModelRefusedError, UnreadableAnswerError

CHAT_PATH: Final = "/v1/chat/completions"


class AnswerFormat(StrEnum):
    """How the server is asked for JSON, the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"


class OpenAIProvider:
    """Asks one model for a chat completion.

    A server that refuses the answer format is asked for the next looser one; the one that works is kept.
    """

    def __init__(
        self,
        *,
        endpoint: JsonEndpoint,
        model: str,
        name: str = "openai",
        answer_format: AnswerFormat = AnswerFormat.JSON_SCHEMA,
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._name = name
        self._formats: tuple[AnswerFormat, ...] = tuple(AnswerFormat)[
            tuple(AnswerFormat).index(answer_format) :
        ]

    @property
    def name(self) -> str:
        """The name in settings, logs and provenance."""
        return self._name if not self._model else f"{self._name}/{self._model}"

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        """Return the answer to ``request``.

        Raises:
            ProviderBusyError: no answer.
            UnreadableAnswerError: an answer without a text.
            ModelRefusedError: refused in every answer format that is left, or by the model itself.
        """
        for answer_format in self._formats:
            try:
                body = await call(self._endpoint, self._payload(request, answer_format), timeout=timeout)
            except EndpointRefusedError as exc:
                if answer_format is self._formats[-1]:
                    raise ModelRefusedError(str(exc)) from exc
                continue
            # A format that worked is the only one from now on: a later refusal is then about the request.
            self._formats = (answer_format,)
            return self._read(body)
        raise ModelRefusedError(f"{self.name} refused the request")

    def _payload(self, request: Request, answer_format: AnswerFormat) -> Mapping[str, object]:
        payload: dict[str, object] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": request.fixed},
                {"role": "user", "content": request.varying},
            ],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.schema is None or answer_format is AnswerFormat.NONE:
            return payload
        if answer_format is AnswerFormat.JSON_OBJECT:
            return payload | {"response_format": {"type": "json_object"}}
        schema = {"name": request.schema_name, "schema": request.schema, "strict": False}
        return payload | {"response_format": {"type": "json_schema", "json_schema": schema}}

    def _read(self, body: bytes) -> Completion:
        envelope = table(decoded(body, self.name))
        refuse_error(envelope, self.name)
        choice = _first_choice(envelope)
        message, reason = table(choice.get("message")), choice.get("finish_reason")
        if message.get("refusal") or reason == "content_filter":
            raise ModelRefusedError(f"{self.name} declines to answer this")
        text = _text(message.get("content"))
        if not text.strip():
            raise UnreadableAnswerError(f"{self.name} answered without a text")
        usage = table(envelope.get("usage"))
        return Completion(
            text=text,
            tokens_in=count(usage.get("prompt_tokens")),
            tokens_out=count(usage.get("completion_tokens")),
            cut=reason == "length",
        )


def _first_choice(envelope: Mapping[str, object]) -> Mapping[str, object]:
    choices = envelope.get("choices")
    return (
        table(choices[0])
        if isinstance(choices, Sequence) and not isinstance(choices, str) and choices
        else {}
    )


def _text(content: object) -> str:
    """Return the text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(text for part in parts if isinstance(text := table(part).get("text"), str))
