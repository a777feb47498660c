"""Chat completions, as OpenAI and every compatible server speak them."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Final

from clients.endpoint import JsonEndpoint
from clients.llm.formats import AnswerFormats
from clients.llm.provider import Completion, Request
from clients.llm.wire import count, decoded, first_table, joined_text, refuse_error, table
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
        self._model = model
        self._name = name
        every = tuple(AnswerFormat)
        self._formats = AnswerFormats(
            endpoint=endpoint,
            name=self.name,
            formats=[
                partial(self._payload, answer_format=one) for one in every[every.index(answer_format) :]
            ],
        )

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
        return self._read(await self._formats.ask(request, timeout=timeout))

    def _payload(self, request: Request, *, answer_format: AnswerFormat) -> Mapping[str, object]:
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
        choice = first_table(envelope.get("choices"))
        message, reason = table(choice.get("message")), choice.get("finish_reason")
        if message.get("refusal") or reason == "content_filter":
            raise ModelRefusedError(f"{self.name} declines to answer this")
        text = joined_text(message.get("content"))
        if not text.strip():
            raise UnreadableAnswerError(f"{self.name} answered without a text")
        usage = table(envelope.get("usage"))
        return Completion(
            text=text,
            tokens_in=count(usage.get("prompt_tokens")),
            tokens_out=count(usage.get("completion_tokens")),
            cut=reason == "length",
        )
