"""Facts as rows of ``lis.memory_facts``."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from domain.memory.facts import FactRow, Period
from domain.memory.projection import Status
from domain.memory.stances import Mode
from storage.json_text import Row

_TIMES: Final = ("expires_at", "created_at", "updated_at", "last_seen_at", "deleted_at")
_RANGE: Final = re.compile(r'[\[(](?:"(?P<start>[^"]+)")?,(?:"(?P<end>[^"]+)")?\)')

FACT_COLUMNS: Final[LiteralString] = """
    f.fact_id, f.tenant_id, f.user_id::text AS user_id, f.avatar_id::text AS avatar_id, f.category,
    f.fact_key,
    f.fact_value, f.confidence, f.status, f.source_session_id::text AS source_session_id,
    f.source_message_ids,
    f.source_excerpt, f.dedup_hash, f.slot, f.mode, f.norm, f.content, f.importance, f.reinforced,
    f.first_said_at, f.last_said_at, f.valid_from, f.valid_to, f.valid, f.expires_at, f.superseded_by,
    f.merged_into, f.names, f.asserted_by, f.extraction_method, f.model, f.spec_version, f.reasoning,
    f.revision, f.told_status, f.created_at, f.updated_at, f.last_seen_at, f.deleted_at,
    f.aliases, f.topics
"""


def fact_from_row(row: Mapping[str, Any]) -> FactRow:
    """Return the fact of a row of ``FACT_COLUMNS``."""
    plain = {key: value for key, value in row.items() if key not in ("valid", "n")}
    told = row["told_status"]
    return FactRow(
        **{
            **plain,
            "status": Status(row["status"]),
            "mode": Mode(row["mode"]),
            "told_status": Status(told) if told is not None else None,
            "names": frozenset(row["names"]),
            "source_message_ids": tuple(row["source_message_ids"]),
            "aliases": tuple(row["aliases"]),
            "topics": tuple(row["topics"]),
            "source_session_id": row["source_session_id"] or "",
            "source_excerpt": row["source_excerpt"] or "",
            "intervals": tuple((one.lower, one.upper) for one in row["valid"]),
        }
    )


def fact_from_version(row: Mapping[str, Any]) -> FactRow:
    """Return the fact that a version keeps as JSON, as ``fact_row`` wrote it then."""
    times = {name: _time(row.get(name)) for name in _TIMES}
    ids = {name: UUID(row[name]) if row.get(name) else None for name in ("superseded_by", "merged_into")}
    plain = {name: value for name, value in row.items() if name not in ("valid", "valid_from", "valid_to")}
    first, last = _time(row["first_said_at"]), _time(row["last_said_at"])
    if first is None or last is None:
        raise ValueError("a version has no time")
    told = row.get("told_status")
    return FactRow(
        **{
            **plain,
            **times,
            **ids,
            "fact_id": UUID(row["fact_id"]),
            "status": Status(row["status"]),
            "mode": Mode(row["mode"]),
            "told_status": Status(told) if told is not None else None,
            "names": frozenset(map(UUID, row["names"])),
            "source_message_ids": tuple(row["source_message_ids"]),
            "source_session_id": row.get("source_session_id") or "",
            "source_excerpt": row.get("source_excerpt") or "",
            "aliases": tuple(row.get("aliases") or ()),
            "topics": tuple(row.get("topics") or ()),
            "first_said_at": first,
            "last_said_at": last,
            "valid_from": _time(row.get("valid_from")),
            "valid_to": _time(row.get("valid_to")),
            "intervals": tuple(_periods(row["valid"])),
        }
    )


def _periods(text: str) -> Iterator[Period]:
    """Read the text of a multirange as ``fact_row`` writes it."""
    for found in _RANGE.finditer(text):
        yield _time(found["start"]), _time(found["end"])


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def fact_row(fact: FactRow) -> Row:
    """Return ``fact`` for ``json_to_recordset``; its intervals become the text of a multirange."""
    return {
        "fact_id": fact.fact_id,
        "tenant_id": fact.tenant_id,
        "user_id": fact.user_id,
        "avatar_id": fact.avatar_id,
        "category": fact.category,
        "fact_key": fact.fact_key,
        "fact_value": fact.fact_value,
        "confidence": fact.confidence,
        "status": fact.status,
        "source_session_id": fact.source_session_id or None,
        "source_message_ids": fact.source_message_ids,
        "source_excerpt": fact.source_excerpt,
        "dedup_hash": fact.dedup_hash,
        "slot": fact.slot,
        "mode": fact.mode,
        "norm": fact.norm,
        "content": fact.content,
        "importance": fact.importance,
        "reinforced": fact.reinforced,
        "first_said_at": fact.first_said_at,
        "last_said_at": fact.last_said_at,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "valid": "{" + ",".join(_range(one) for one in fact.intervals) + "}",
        "expires_at": fact.expires_at,
        "superseded_by": fact.superseded_by,
        "merged_into": fact.merged_into,
        "names": sorted(fact.names),
        "asserted_by": fact.asserted_by,
        "extraction_method": fact.extraction_method,
        "model": fact.model,
        "spec_version": fact.spec_version,
        "reasoning": fact.reasoning,
        "revision": fact.revision,
        "told_status": fact.told_status,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "last_seen_at": fact.last_seen_at,
        "deleted_at": fact.deleted_at,
        "aliases": fact.aliases,
        "topics": fact.topics,
    }


def _range(period: Period) -> str:
    return f"[{_end(period[0])},{_end(period[1])})" if period[0] is not None else f"(,{_end(period[1])})"


def _end(time: datetime | None) -> str:
    return f'"{time.isoformat()}"' if time is not None else ""
