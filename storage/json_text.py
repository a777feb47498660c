"""JSON for parameters: one text a table, which PostgreSQL unfolds into rows."""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import orjson

Row = Mapping[str, Any]


def rows_text(rows: Sequence[Row]) -> str:
    """Return ``rows`` as the text of a JSON array, for ``json_to_recordset``."""
    return orjson.dumps(rows, default=_plain).decode()


def object_text(value: Row) -> str:
    """Return ``value`` as the text of a JSON object, for a ``jsonb`` column."""
    return orjson.dumps(value, default=_plain).decode()


def time_of(text: str | None) -> datetime | None:
    """Read a time that PostgreSQL wrote into JSON."""
    return datetime.fromisoformat(text) if text is not None else None


def base64_text(data: bytes | None) -> str | None:
    """Return ``data`` for ``decode(…, 'base64')``."""
    return base64.b64encode(data).decode() if data is not None else None


def _plain(value: object) -> object:
    if isinstance(value, UUID | datetime):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(map(str, cast("frozenset[object]", value)))
    raise TypeError(f"no JSON for {type(value).__name__}")
