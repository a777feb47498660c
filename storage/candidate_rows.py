"""Candidates as JSON: what a window gave, kept so that no model is paid twice."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from domain.candidates import Candidate, Method
from domain.memory.assertions import Also, Amendment, Corrects, InsteadOf
from domain.memory.stances import Stance
from domain.ports import Usage, WindowCandidates
from storage.json_text import Row, time_of


def window_row(window: WindowCandidates) -> Row:
    """Return ``window`` for a ``jsonb`` column."""
    return {
        "candidates": [_candidate_row(one) for one in window.candidates],
        "usage": asdict(window.usage),
        "provider": window.provider,
        "degraded": window.degraded,
    }


def window_from_row(row: Mapping[str, Any]) -> WindowCandidates:
    """Read what ``window_row`` made; the model was paid when it was made, so it counts no use."""
    return WindowCandidates(
        candidates=tuple(_candidate(one) for one in row["candidates"]),
        usage=Usage(),
        provider=row["provider"],
        degraded=row["degraded"],
    )


def amendment_row(amends: Amendment | None) -> tuple[str | None, str | None]:
    """Return the kind of an amendment and the value that it names."""
    match amends:
        case None:
            return None, None
        case Also():
            return "also", None
        case InsteadOf(value):
            return "instead_of", value
        case Corrects(value, everywhere):
            return "corrects_everywhere" if everywhere else "corrects", value


def amendment_from_row(kind: str | None, value: str | None) -> Amendment | None:
    """Read what ``amendment_row`` made."""
    match kind:
        case None:
            return None
        case "also":
            return Also()
        case "instead_of":
            return InsteadOf(value or "")
        case _:
            return Corrects(value, everywhere=kind == "corrects_everywhere")


def _candidate_row(one: Candidate) -> Row:
    kind, value = amendment_row(one.amends)
    return {
        "category": one.category,
        "key": one.key,
        "value": one.value,
        "about": one.about,
        "qualifier": one.qualifier,
        "stance": one.stance,
        "amends": kind,
        "amends_value": value,
        "content": one.content,
        "confidence": one.confidence,
        "importance": one.importance,
        "said_at": one.said_at,
        "valid_from": one.valid_from,
        "valid_to": one.valid_to,
        "expires_at": one.expires_at,
        "message_ids": one.message_ids,
        "excerpt": one.excerpt,
        "asserted_by": one.asserted_by,
        "method": one.method,
        "model": one.model,
        "spec_version": one.spec_version,
        "reasoning": one.reasoning,
        "position": one.position,
    }


def _candidate(row: Mapping[str, Any]) -> Candidate:
    plain = {key: value for key, value in row.items() if key != "amends_value"}
    times = {key: time_of(row[key]) for key in ("said_at", "valid_from", "valid_to", "expires_at")}
    return Candidate(
        **{
            **plain,
            **times,
            "stance": Stance(row["stance"]),
            "amends": amendment_from_row(row["amends"], row["amends_value"]),
            "message_ids": tuple(row["message_ids"]),
            "method": Method(row["method"]),
        }
    )
