"""The inputs of the fold as rows: assertions, opinions and retractions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from domain.memory.assertions import (
    Assertion,
    Authority,
    Claim,
    Compatible,
    Judgement,
    Merge,
    Retraction,
    RetractionKind,
    Rivals,
    Same,
    Scope,
    SlotLink,
    Verdict,
    claim_id,
)
from domain.memory.slots import slot_from_text, slot_text
from domain.memory.stances import Stance
from storage.candidate_rows import amendment_from_row, amendment_row
from storage.json_text import Row


def assertion_row(one: Assertion) -> Row:
    """Return ``one`` for ``json_to_recordset``."""
    amends, amends_value = amendment_row(one.amends)
    return {
        "user_id": one.scope.user,
        "tenant_id": one.scope.tenant,
        "avatar_id": one.scope.avatar,
        "assertion_id": one.assertion_id,
        "session_id": one.session_id,
        "generation": one.generation,
        "position": one.position,
        "said_at": one.said_at,
        "slot": slot_text(one.slot),
        "value": one.value,
        "norm": one.norm,
        "stance": one.stance.value,
        "amends": amends,
        "amends_value": amends_value,
        "valid_from": one.valid_from,
        "valid_to": one.valid_to,
        "day": one.day,
        "expires_at": one.expires_at,
        "confidence": one.confidence,
        "importance": one.importance,
        "category": one.category,
        "content": one.content,
        "asserted_by": one.asserted_by,
        "message_ids": one.message_ids,
        "excerpt": one.excerpt,
        "method": one.method,
        "model": one.model,
        "spec_version": one.spec_version,
        "reasoning": one.reasoning,
        "claim_id": claim_id(one.scope, one.claim),
        "known_as": one.known_as,
        "aliases": one.aliases,
        "topics": one.topics,
    }


def assertion_from_row(scope: Scope, row: Mapping[str, Any]) -> Assertion:
    """Read what ``assertion_row`` wrote; what is derived is derived again."""
    return Assertion(
        scope=scope,
        session_id=row["session_id"],
        generation=row["generation"],
        position=row["position"],
        said_at=row["said_at"],
        slot=slot_from_text(row["slot"]),
        value=row["value"],
        stance=Stance(row["stance"]),
        amends=amendment_from_row(row["amends"], row["amends_value"]),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        day=row["day"],
        expires_at=row["expires_at"],
        confidence=row["confidence"],
        importance=row["importance"],
        category=row["category"],
        asserted_by=row["asserted_by"],
        message_ids=tuple(row["message_ids"]),
        method=row["method"],
        known_as=row["known_as"],
        content=row["content"],
        excerpt=row["excerpt"],
        model=row["model"],
        spec_version=row["spec_version"],
        reasoning=row["reasoning"],
        aliases=tuple(row["aliases"]),
        topics=tuple(row["topics"]),
    )


def judgements_from_rows(
    rows: Iterable[Mapping[str, Any]], claims: Mapping[UUID, Claim]
) -> Iterator[Judgement]:
    """Return the judgements of which both sides are said; the others have no effect."""
    for row in rows:
        left, right = claims.get(UUID(row["left_claim"])), claims.get(UUID(row["right_claim"]))
        if left is not None and right is not None:
            yield Judgement(
                left=left,
                right=right,
                verdict=_verdict(row["verdict"], row["merged_text"]),
                authority=Authority(row["authority"]),
                decided_at=datetime.fromisoformat(row["decided_at"]),
                note=row["note"],
            )


def judgement_row(scope: Scope, one: Judgement, judge: str) -> Row:
    """Return ``one`` for ``json_to_recordset``; the pair is ordered by the ids of its claims."""
    left, right = sorted((one.left, one.right), key=lambda claim: claim_id(scope, claim))
    return {
        "user_id": scope.user,
        "tenant_id": scope.tenant,
        "avatar_id": scope.avatar,
        "left_claim": claim_id(scope, left),
        "right_claim": claim_id(scope, right),
        "authority": one.authority.value,
        "verdict": _VERDICTS[type(one.verdict)],
        "merged_text": one.verdict.text if isinstance(one.verdict, Merge) else None,
        "note": one.note,
        "left_slot": slot_text(left.slot),
        "right_slot": slot_text(right.slot),
        "judge": judge,
    }


def links_from_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[SlotLink]:
    """Return the stored answers whether two slots are one."""
    for row in rows:
        yield SlotLink(
            left=slot_from_text(row["left_slot"]),
            right=slot_from_text(row["right_slot"]),
            same=row["same"],
            authority=Authority(row["authority"]),
        )


def retractions_from_rows(rows: Iterable[Mapping[str, Any]]) -> Sequence[Retraction]:
    """Return the commands of a scope."""
    return [
        Retraction(
            target=UUID(row["target_claim"]) if row["target_claim"] else slot_from_text(row["target_slot"]),
            at=datetime.fromisoformat(row["at"]),
            kind=RetractionKind(row["kind"]),
            source=row["source"],
        )
        for row in rows
    ]


_VERDICTS: Final[Mapping[type[Verdict], str]] = {
    Same: "same",
    Rivals: "rivals",
    Compatible: "compatible",
    Merge: "merge",
}


def _verdict(verdict: str, merged_text: str | None) -> Verdict:
    match verdict:
        case "same":
            return Same()
        case "rivals":
            return Rivals()
        case "compatible":
            return Compatible()
        case _:
            return Merge(merged_text or "")
