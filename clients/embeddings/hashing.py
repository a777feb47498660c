"""An embedder for tests: words hashed to places; the same text has the same vector on every machine."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from clients.embeddings.vectors import embeddable, packed
from domain.ports import EmbedderInfo

_WORD: Final = re.compile(r"\w+")
_INFO: Final = EmbedderInfo(
    model="hashing-for-tests", dimensions=512, near_duplicate_distance=0.05, max_chars=2_000
)


class HashingEmbedder:
    """Embeds by hashing; implements ``domain.ports.Embedder``."""

    def __init__(self, *, info: EmbedderInfo = _INFO) -> None:
        self._info = info

    @property
    def info(self) -> EmbedderInfo:
        """The model behind the vectors."""
        return self._info

    async def start(self) -> None:
        """Do nothing: there is nothing to start."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, little-endian float16."""
        table = np.zeros((len(texts), self._info.dimensions), dtype=np.float32)
        for row, text in zip(table, embeddable(texts, max_chars=self._info.max_chars), strict=True):
            for word in _WORD.findall(text.casefold()) or [text]:
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                place = int.from_bytes(digest, "little")
                row[place % self._info.dimensions] += 1.0 if place >> 63 else -1.0
        return packed(table, count=len(texts), dimensions=self._info.dimensions)
