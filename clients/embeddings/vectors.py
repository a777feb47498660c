"""Vectors as they are stored: little-endian float16, of length one."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from domain.errors import EmbedderUnavailableError

STORED: Final = np.dtype("<f2")


def packed(vectors: npt.ArrayLike, *, count: int, dimensions: int) -> list[bytes]:
    """Return ``vectors`` as bytes, each scaled to length one.

    Raises:
        EmbedderUnavailableError: there are not ``count`` vectors of ``dimensions`` finite numbers.
    """
    try:
        table = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as exc:
        raise EmbedderUnavailableError("the embedder answered with something that is no vectors") from exc
    if table.shape != (count, dimensions):
        raise EmbedderUnavailableError(
            f"the embedder answered {table.shape} instead of {(count, dimensions)}"
        )
    if not np.isfinite(table).all():
        raise EmbedderUnavailableError("the embedder answered with numbers that are not finite")
    lengths = np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return [row.tobytes() for row in (table / lengths).astype(STORED)]


def split(raw: bytes, *, count: int, dimensions: int) -> list[bytes]:
    """Cut ``raw`` into vectors that are packed already.

    Raises:
        EmbedderUnavailableError: the length does not fit.
    """
    size = dimensions * STORED.itemsize
    if len(raw) != count * size:
        raise EmbedderUnavailableError("the embedder answered with another number of vectors")
    return [raw[start : start + size] for start in range(0, len(raw), size)]


def embeddable(texts: Sequence[str], *, max_chars: int) -> list[str]:
    """Return ``texts`` without lone surrogates and cut at ``max_chars``; an empty text becomes a blank."""
    return [text[:max_chars].encode("utf-8", "replace").decode() or " " for text in texts]
