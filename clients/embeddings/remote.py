"""What embedders behind HTTP share: batches, tries and the way from an answer to vectors."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from clients.embeddings.vectors import embeddable, packed
from clients.endpoint import EndpointRefusedError, EndpointUnavailableError, JsonEndpoint
from domain.errors import EmbedderUnavailableError
from domain.ports import EmbedderInfo

_TRIES: Final = 3
_BATCH: Final = 32


class RemoteEmbedder(ABC):
    """Embeds by an HTTP server; ``prefix`` goes before each text where the model wants one."""

    def __init__(self, *, endpoint: JsonEndpoint, info: EmbedderInfo, prefix: str = "") -> None:
        self._endpoint = endpoint
        self._info = info
        self._prefix = prefix

    @property
    def info(self) -> EmbedderInfo:
        """The model behind the vectors."""
        return self._info

    async def start(self) -> None:
        """Embed one word, so that a wrong address, token or dimension shows now.

        Raises:
            EmbedderUnavailableError: the server does not answer with vectors of ``info.dimensions``.
        """
        await self.embed(["ready"])

    async def aclose(self) -> None:  # noqa: B027 - nothing to close is right for every one of them
        """Do nothing: the HTTP client belongs to whoever opened it."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, little-endian float16.

        Raises:
            EmbedderUnavailableError: the server did not answer with as many vectors of ``info.dimensions``.
        """
        clean = [self._prefix + text for text in embeddable(texts, max_chars=self._info.max_chars)]
        vectors: list[bytes] = []
        for start in range(0, len(clean), _BATCH):
            vectors += await self._batch(clean[start : start + _BATCH])
        return vectors

    async def _batch(self, texts: list[str]) -> list[bytes]:
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda exc: isinstance(exc, EndpointUnavailableError) and exc.again),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            stop=stop_after_attempt(_TRIES),
            reraise=True,
        )
        try:
            body: bytes = await retrying(self._endpoint.post, self._payload(texts))
            found = self._vectors(json.loads(body))
        except (EndpointUnavailableError, EndpointRefusedError) as exc:
            raise EmbedderUnavailableError(str(exc)) from exc
        except (ValueError, TypeError, KeyError, RecursionError) as exc:
            raise EmbedderUnavailableError("the embedder's answer cannot be read") from exc
        return packed(found, count=len(texts), dimensions=self._info.dimensions)

    @abstractmethod
    def _payload(self, texts: list[str]) -> Mapping[str, object]:
        """Return the question about ``texts``."""

    @abstractmethod
    def _vectors(self, answer: object) -> list[list[float]]:
        """Return the vectors of an answer; TypeError, KeyError and ValueError mean that it has none."""
