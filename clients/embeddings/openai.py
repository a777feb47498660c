"""Embeddings as OpenAI and compatible servers speak them."""

from collections.abc import Mapping
from typing import Final

from clients.embeddings.remote import RemoteEmbedder

EMBEDDINGS_PATH: Final = "/v1/embeddings"


class OpenAIEmbedder(RemoteEmbedder):
    """Embeds by ``/v1/embeddings``; implements ``domain.ports.Embedder``."""

    def _payload(self, texts: list[str]) -> Mapping[str, object]:
        return {"model": self._info.model, "input": texts, "encoding_format": "float"}

    def _vectors(self, answer: object) -> list[list[float]]:
        if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
            raise TypeError("an object with data is expected")
        return [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: int(entry["index"]))]
