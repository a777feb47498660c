"""Values of JSON as other programs write them: nothing is trusted to be there, or to be of its kind."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

Table = Mapping[str, object]

_MILLISECONDS: Final = 100_000_000_000


def table(value: object) -> Table:
    """Return ``value`` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> Sequence[object]:
    """Return ``value`` where it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def text(value: object) -> str:
    """Return ``value`` where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def moment(value: object) -> datetime | None:
    """Read a time: seconds or milliseconds of the epoch, or ISO 8601; None where it says neither.

    One without a zone comes back without one.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_epoch(value)
    written = text(value).strip()
    if not written:
        return None
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        pass
    try:
        return _of_epoch(float(written))
    except ValueError:
        return None


def _of_epoch(number: float) -> datetime | None:
    seconds = number / 1_000 if abs(number) >= _MILLISECONDS else number
    try:
        return datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else None
    except (OverflowError, OSError, ValueError):
        return None


def texts_of(content: object, *, kinds: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a message's content: itself, or the parts of one of ``kinds`` or of none."""
    if isinstance(content, str):
        yield content
        return
    for part in items(content):
        fields = table(part)
        if isinstance(part, str):
            yield part
        elif fields.get("type", "text") in kinds and isinstance(fields.get("text"), str):
            yield text(fields["text"])
