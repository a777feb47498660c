"""Embeddings by a text-embeddings-inference server: ``POST /embed``."""

from collections.abc import Mapping
from typing import Final

from clients.embeddings.remote import RemoteEmbedder

EMBED_PATH: Final = "/embed"


class TeiEmbedder(RemoteEmbedder):
    """Embeds by ``/embed``; implements ``domain.ports.Embedder``."""

    def _payload(self, texts: list[str]) -> Mapping[str, object]:
        return {"inputs": texts, "normalize": True, "truncate": True}

    def _vectors(self, answer: object) -> list[list[float]]:
        if not isinstance(answer, list):
            raise TypeError("a list of vectors is expected")
        return answer
