"""Read records whose headers have names that are not UTF-8 (docs/architecture/consuming.md, "Headers").

The broker takes any bytes for a name; its client raises on them in the middle of a batch, and no later record
of the partition could ever be read. Here such a name is read as its bytes written out in hexadecimal: it is
the name of no header that means anything to us.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final, Self, SupportsIndex

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_HEAD: Final = struct.Struct(">qi")


def read_any_header_name() -> None:
    """Let every consumer of this process read past any name of a header; doing it twice changes nothing."""
    fetcher.MemoryRecords = ReadableRecords


class ReadableRecords:
    """What a fetch brought of a partition, in batches, as the client's own class gives it."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._records = MemoryRecords(raw)

    def size_in_bytes(self) -> int:
        """Return the bytes of all batches."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Say whether there is another batch."""
        return bool(self._records.has_next())

    def next_batch(self) -> "_ReadableBatch | None":
        """Return the next batch, or None after the last one."""
        batch = self._records.next_batch()
        return None if batch is None else _ReadableBatch(batch, self._raw)


class _ReadableBatch:
    """A batch that is read anew, by the client's slower reader, where a name cannot be decoded."""

    def __init__(self, batch: Any, raw: bytes) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        read = 0
        try:
            for record in self._batch:
                read += 1
                yield record
        except UnicodeDecodeError:
            for place, record in enumerate(self._anew()):
                if place >= read:
                    yield record

    def _anew(self) -> Iterator[Any]:
        yield from _BatchOfAnyNames(self._own_bytes())

    def _own_bytes(self) -> bytes:
        """Return the bytes of this batch among those of the fetch."""
        start = 0
        while True:
            offset, length = _HEAD.unpack_from(self._raw, start)
            end = start + _HEAD.size + length
            if offset == self._batch.base_offset:
                return self._raw[start:end]
            start = end


class _BatchOfAnyNames(_DefaultRecordBatchPy):  # type: ignore[misc, unused-ignore]
    _buffer: bytearray

    def __iter__(self) -> Self:
        super().__iter__()
        # Only now is it decompressed.
        self._buffer = _AnyNames(self._buffer)
        return self


class _AnyNames(bytearray):
    """Bytes of which every part decodes."""

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        part = super().__getitem__(place)
        return _AnyName(part) if isinstance(part, bytearray) else part


class _AnyName(bytearray):
    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return bytes(self).decode(encoding, errors)
