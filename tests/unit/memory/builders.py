"""Statements and commands in a few words, for tests."""

from datetime import UTC, datetime, timedelta

from domain.memory.assertions import (
    Amendment,
    Assertion,
    Claim,
    Mode,
    Retraction,
    RetractionKind,
    Scope,
    Stance,
    claim_id,
)
from domain.memory.slots import Slot, slot_of
from domain.memory.values import normalise

SCOPE = Scope(tenant="acme", user="u1", avatar="a1")


def at(text: str) -> datetime:
    """Read ``2024-03-01`` or ``2024-03-01T10:00`` as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def said(  # noqa: PLR0913 - one keyword for each thing that can be said
    when: str | datetime,
    key: str | Slot,
    value: str,
    *,
    session: str = "",
    position: int = 0,
    stance: Stance = Stance.HOLDS,
    amends: Amendment | None = None,
    since: str = "",
    until: str = "",
    expires: str = "",
    confidence: float = 0.9,
    method: str = "llm",
) -> Assertion:
    """Build one statement; without ``session`` each day is a session of its own."""
    moment = at(when) if isinstance(when, str) else when
    return Assertion(
        scope=SCOPE,
        session_id=session or f"s-{moment:%Y%m%d}",
        position=position,
        said_at=moment + timedelta(minutes=position),
        slot=slot_of(key) if isinstance(key, str) else key,
        value=value,
        stance=stance,
        amends=amends,
        valid_from=at(since) if since else None,
        valid_to=at(until) if until else None,
        expires_at=at(expires) if expires else None,
        confidence=confidence,
        method=method,
    )


def claim(key: str | Slot, value: str, mode: Mode = Mode.HOLDS) -> Claim:
    """Name a claim by key and value."""
    return Claim(slot_of(key) if isinstance(key, str) else key, normalise(value), mode)


def command(
    when: str,
    key: str | Slot,
    value: str = "*",
    kind: RetractionKind = RetractionKind.FORGET,
    mode: Mode = Mode.HOLDS,
) -> Retraction:
    """Build a command about one value, or about the slot."""
    slot = slot_of(key) if isinstance(key, str) else key
    target = slot if value == "*" else claim_id(SCOPE, claim(slot, value, mode))
    return Retraction(target=target, at=at(when), kind=kind)
