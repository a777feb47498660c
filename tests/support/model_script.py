"""What a model of tests and benchmarks is to do: where it answers, with what, and which faults come first."""

import json
from dataclasses import dataclass
from typing import Final, Self

CHAT_PATH: Final = "/v1/chat/completions"
GENERATE_PATH: Final = "/api/generate"
MESSAGES_PATH: Final = "/v1/messages"
GEMINI_ENDING: Final = ":generateContent"
EMBED_PATH: Final = "/embed"
EMBEDDINGS_PATH: Final = "/v1/embeddings"

NOTHING: Final = json.dumps({"memories": [], "nothing_to_extract": True, "extraction_notes": ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one call gets: a text of the model, or a fault of the wire."""

    text: str | None = None
    status: int = 200
    retry_after: str | None = None
    body: str | None = None
    hang: bool = False
    cut: bool = False
    drop: bool = False
    finish_reason: str = "stop"

    @classmethod
    def says(cls, text: str, *, finish_reason: str = "stop") -> Self:
        """Answer with ``text`` in the wire format that was asked for."""
        return cls(text=text, finish_reason=finish_reason)

    @classmethod
    def fails(cls, status: int, *, retry_after: str | None = None) -> Self:
        """Answer with an error status."""
        return cls(status=status, retry_after=retry_after, body='{"error":{"message":"scripted"}}')

    @classmethod
    def sends(cls, body: str) -> Self:
        """Answer 200 with ``body`` as it is."""
        return cls(body=body)


HANGS: Final = Step(hang=True)
CUTS_THE_STREAM: Final = Step(cut=True)
DROPS_THE_CONNECTION: Final = Step(drop=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the model behaves; everything crosses to its process as JSON."""

    latency: float = 0.0
    steps: tuple[Step, ...] = ()
    otherwise: str = NOTHING
    refused_formats: tuple[str, ...] = ()
    dimensions: int = 512
    port: int = 0
