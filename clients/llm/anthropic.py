"""Messages, as Anthropic's API and what is compatible with it speak them."""

from collections.abc import Mapping
from typing import Final

from clients.endpoint import JsonEndpoint
from clients.llm.formats import AnswerFormats
from clients.llm.provider import Completion, Request
from clients.llm.wire import count, decoded, joined_text, refuse_error, table
from domain.errors import ModelRefusedError, UnreadableAnswerError

MESSAGES_PATH: Final = "/v1/messages"
KEY_HEADER: Final = "x-api-key"
VERSION: Final = {"anthropic-version": "2023-06-01"}


class AnthropicProvider:
    """Asks one model for a message.

    The fixed part of a request is marked to be kept by the server. A model that refuses the answer format or
    a temperature is asked without; what works is kept.
    """

    def __init__(self, *, endpoint: JsonEndpoint, model: str, name: str = "anthropic") -> None:
        self._model = model
        self._name = name
        self._formats = AnswerFormats(
            endpoint=endpoint,
            name=self.name,
            formats=(self._with_temperature, self._with_schema, self._plain),
        )

    @property
    def name(self) -> str:
        """The name in settings, logs and provenance."""
        return f"{self._name}/{self._model}"

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        """Return the answer to ``request``.

        Raises:
            ProviderBusyError: no answer.
            UnreadableAnswerError: an answer without a text.
            ModelRefusedError: refused in every answer format that is left, or by the model itself.
        """
        return self._read(await self._formats.ask(request, timeout=timeout))

    def _with_temperature(self, request: Request) -> Mapping[str, object]:
        return self._with_schema(request) | {"temperature": request.temperature}

    def _with_schema(self, request: Request) -> dict[str, object]:
        payload = self._plain(request)
        if request.schema is not None:
            payload["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return payload

    def _plain(self, request: Request) -> dict[str, object]:
        fixed = {"type": "text", "text": request.fixed, "cache_control": {"type": "ephemeral"}}
        return {
            "model": self._model,
            "max_tokens": request.max_tokens,
            "system": [fixed],
            "messages": [{"role": "user", "content": request.varying}],
        }

    def _read(self, body: bytes) -> Completion:
        envelope = table(decoded(body, self.name))
        refuse_error(envelope, self.name)
        reason = envelope.get("stop_reason")
        if reason == "refusal":
            raise ModelRefusedError(f"{self.name} declines to answer this")
        text = joined_text(envelope.get("content"))
        if not text.strip():
            raise UnreadableAnswerError(f"{self.name} answered without a text")
        usage = table(envelope.get("usage"))
        return Completion(
            text=text,
            tokens_in=sum(count(usage.get(name)) for name in _TOKENS_IN),
            tokens_out=count(usage.get("output_tokens")),
            cut=reason == "max_tokens",
        )


# What was read from the server's cache, or written to it, is not among the input tokens.
_TOKENS_IN: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
