"""Generated content, as Gemini's API speaks it."""

from collections.abc import Mapping
from typing import Final

from clients.endpoint import JsonEndpoint
from clients.llm.formats import AnswerFormats
from clients.llm.provider import Completion, Request
from clients.llm.wire import count, decoded, first_table, joined_text, refuse_error, table
from domain.errors import ModelRefusedError, UnreadableAnswerError

KEY_HEADER: Final = "x-goog-api-key"

_JSON: Final = "application/json"
_DECLINED: Final = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}
)


def content_path(model: str) -> str:
    """Return the path under which ``model`` generates content."""
    return f"/v1beta/models/{model.removeprefix('models/')}:generateContent"


class GeminiProvider:
    """Asks one model for content; one that refuses the answer format is asked for a looser one, once."""

    def __init__(self, *, endpoint: JsonEndpoint, model: str, name: str = "gemini") -> None:
        self._model = model
        self._name = name
        self._formats = AnswerFormats(
            endpoint=endpoint, name=self.name, formats=(self._with_schema, self._as_json, self._plain)
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
            ModelRefusedError: refused in every answer format that is left, or blocked by the service.
        """
        return self._read(await self._formats.ask(request, timeout=timeout))

    def _with_schema(self, request: Request) -> Mapping[str, object]:
        if request.schema is None:
            return self._plain(request)
        return self._payload(request, responseMimeType=_JSON, responseJsonSchema=request.schema)

    def _as_json(self, request: Request) -> Mapping[str, object]:
        return self._payload(request, responseMimeType=_JSON) if request.schema else self._plain(request)

    def _plain(self, request: Request) -> Mapping[str, object]:
        return self._payload(request)

    @staticmethod
    def _payload(request: Request, **answer: object) -> Mapping[str, object]:
        return {
            "systemInstruction": {"parts": [{"text": request.fixed}]},
            "contents": [{"role": "user", "parts": [{"text": request.varying}]}],
            "generationConfig": {
                "temperature": request.temperature,
                "maxOutputTokens": request.max_tokens,
                **answer,
            },
        }

    def _read(self, body: bytes) -> Completion:
        envelope = table(decoded(body, self.name))
        refuse_error(envelope, self.name)
        candidate = first_table(envelope.get("candidates"))
        reason = candidate.get("finishReason")
        if table(envelope.get("promptFeedback")).get("blockReason") or reason in _DECLINED:
            raise ModelRefusedError(f"{self.name} declines to answer this")
        text = _answer(table(candidate.get("content")).get("parts"))
        if not text.strip():
            raise UnreadableAnswerError(f"{self.name} answered without a text")
        usage = table(envelope.get("usageMetadata"))
        return Completion(
            text=text,
            tokens_in=count(usage.get("promptTokenCount")),
            tokens_out=count(usage.get("candidatesTokenCount")) + count(usage.get("thoughtsTokenCount")),
            cut=reason == "MAX_TOKENS",
        )


def _answer(parts: object) -> str:
    """Join the parts of an answer; what the model thought on the way is none of it."""
    found = parts if isinstance(parts, list) else []
    return joined_text([part for part in found if not table(part).get("thought")])
