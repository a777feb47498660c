"""W3C trace context: ``traceparent`` read from one message and carried to the next."""

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

HEADER: Final = "traceparent"

_LONGEST: Final = 256
_SHAPE: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?", re.ASCII)
_INVALID_VERSION: Final = "ff"
_FIRST_VERSION: Final = "00"
_NO_TRACE: Final = "0" * 32
_NO_PARENT: Final = "0" * 16
# Sampled (1) and random trace id (2) are all the flags that version 00 knows; others must not be passed on.
_KNOWN_FLAGS: Final = 0b11
_SAMPLED: Final = 0b01

RandomBytes = Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceparent:
    """A place in a trace: the trace, the span that caused what follows, and the trace's flags."""

    trace_id: str
    parent_id: str
    flags: int

    @property
    def is_sampled(self) -> bool:
        """Whether the caller records this trace."""
        return bool(self.flags & _SAMPLED)

    @property
    def header(self) -> str:
        """The value of the ``traceparent`` header."""
        return f"{_FIRST_VERSION}-{self.trace_id}-{self.parent_id}-{self.flags:02x}"

    def child(self, *, random: RandomBytes = secrets.token_bytes) -> "Traceparent":
        """Return a new span of the same trace."""
        return Traceparent(trace_id=self.trace_id, parent_id=_nonzero(8, random), flags=self.flags)


def parse(value: str | bytes | None) -> Traceparent | None:
    """Read a header's ``value``; None where it is missing or breaks the format, as the standard asks."""
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if not text or len(text) > _LONGEST:
        return None
    match = _SHAPE.fullmatch(text.strip(" \t"))
    if match is None:
        return None
    version, trace_id, parent_id, flags, rest = match.groups()
    is_wrong = version == _INVALID_VERSION or (version == _FIRST_VERSION and rest is not None)
    if is_wrong or trace_id == _NO_TRACE or parent_id == _NO_PARENT:
        return None
    return Traceparent(trace_id=trace_id, parent_id=parent_id, flags=int(flags, 16) & _KNOWN_FLAGS)


def started(*, random: RandomBytes = secrets.token_bytes) -> Traceparent:
    """Return the first span of a new trace, not sampled: nobody asked for a recording."""
    return Traceparent(trace_id=_nonzero(16, random), parent_id=_nonzero(8, random), flags=0)


def continued(value: str | bytes | None, *, random: RandomBytes = secrets.token_bytes) -> Traceparent:
    """Return a child of the span that ``value`` names, or the first span of a new trace."""
    parent = parse(value)
    return parent.child(random=random) if parent else started(random=random)


def traceparent_of(headers: Iterable[tuple[str, bytes]]) -> str | None:
    """Return the one valid ``traceparent`` of ``headers``; None where there is none or more than one."""
    values = [value for name, value in headers if name.lower() == HEADER]
    parsed = parse(values[0]) if len(values) == 1 else None
    return parsed.header if parsed else None


def with_traceparent(
    headers: Iterable[tuple[str, bytes]], traceparent: str | None
) -> tuple[tuple[str, bytes], ...]:
    """Return ``headers`` with ``traceparent`` as their only one; as they are where it is None or invalid."""
    parsed = parse(traceparent)
    if parsed is None:
        return tuple(headers)
    kept = tuple((name, value) for name, value in headers if name.lower() != HEADER)
    return (*kept, (HEADER, parsed.header.encode("ascii")))


def _nonzero(size: int, random: RandomBytes) -> str:
    text = random(size).hex()
    return text if text.strip("0") else "0" * (2 * size - 1) + "1"
