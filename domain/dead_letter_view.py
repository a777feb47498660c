"""The bytes of a dead letter as text for a person, without secrets unless they are asked for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from domain.outbox import RawRecord
from domain.secrets import MARK, redact
from domain.text_cleaning import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """Key, value and headers of a record, fit for a terminal."""

    key: str | None
    value: str | None
    headers: tuple[tuple[str, str], ...]


def redacted_view(record: RawRecord) -> RecordView:
    """Return ``record`` with every secret replaced by the mark, inside JSON and out of it."""
    return RecordView(
        key=_redacted(record.key),
        value=_redacted(record.value),
        headers=tuple((redact(name), _named(name, _plain(value))) for name, value in record.headers),
    )


def raw_view(record: RawRecord) -> RecordView:
    """Return ``record`` as it came; what is not printable is escaped, so that no terminal obeys it."""
    return RecordView(
        key=_escaped(record.key),
        value=_escaped(record.value),
        headers=tuple((name, _escaped(value) or "") for name, value in record.headers),
    )


def _redacted(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        body: object = json.loads(data)
        # What an escape in the JSON hides is seen only when it is read.
        return json.dumps(_without_secrets(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return redact(_plain(data))


def _without_secrets(body: object) -> object:
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        return {redact(_clean(name)): _field(name, value) for name, value in fields.items()}
    if isinstance(body, list):
        return [_without_secrets(one) for one in cast("Sequence[object]", body)]
    if isinstance(body, str):
        return redact(_clean(body))
    is_number = isinstance(body, int | float) and not isinstance(body, bool)
    return MARK if is_number and redact(str(body)) != str(body) else body


def _field(name: str, value: object) -> object:
    """Redact what stands under ``name``, which may say itself that it is a secret: ``"password": "…"``."""
    if isinstance(value, str):
        return _named(name, _clean(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return MARK if _named(name, str(value)) != str(value) else value
    return _without_secrets(value)


def _named(name: str, text: str) -> str:
    alone = redact(text)
    before = f"{name.replace('_', ' ').replace('-', ' ')}: "
    together = redact(before + alone)
    if together == before + alone:
        return alone
    return together.removeprefix(before) if together.startswith(before) else MARK


def _plain(data: bytes) -> str:
    return _clean(data.decode(errors="backslashreplace"))


def _clean(text: str) -> str:
    return clean(text).text


def _escaped(data: bytes | None) -> str | None:
    if data is None:
        return None
    return "".join(map(_shown, data.decode(errors="backslashreplace")))


def _shown(char: str) -> str:
    return char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
