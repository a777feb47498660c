"""Answer requests for the memory that belongs in the next prompt."""

from collections.abc import Awaitable
from typing import Any, Final, Protocol
from uuid import UUID

from consumers.decoding import decode
from consumers.translation import avatar_of, moment_of, user_of
from domain.errors import InvalidInputError
from domain.injection import Injection, InjectionMode, InjectionRequest
from domain.outbox import RawRecord
from schemas import injection as wire

_WAIT_FIELD: Final = b'"wait_for_session"'
_MS_PER_SECOND: Final = 1_000


class Build(Protocol):
    """The use case that builds the text."""

    async def __call__(self, request: InjectionRequest) -> Injection:
        """Return the text for ``request`` and what it was made of."""
        ...


class InjectionAnswers:
    """Decodes an injection request and returns the result of its reply."""

    def __init__(self, build: Build) -> None:
        self._build = build

    async def __call__(self, record: RawRecord) -> object:
        """Return the injection that ``record`` asks for.

        Raises:
            InvalidInputError: the record is no such request.
            InfrastructureError: the database did not answer.
        """
        request = decode(wire.InjectionRequest, record.value)
        return injection_body(await self._build(injection_request(request)))


class WaitsForSessions(Protocol):
    """Waits until a session is remembered."""

    async def __call__(self, tenant_id: str, session_id: UUID, *, seconds: float) -> bool:
        """Return whether the session's job has ended, as soon as it has or ``seconds`` are over."""
        ...


class InjectionWaits:
    """Says which session a request wants to see before it is answered."""

    def __init__(self, sessions: WaitsForSessions) -> None:
        self._sessions = sessions

    def __call__(self, record: RawRecord) -> Awaitable[object] | None:
        """Return the wait that ``record`` asks for; what cannot be read is not waited with."""
        if record.value is None or _WAIT_FIELD not in record.value:
            return None
        try:
            request = decode(wire.InjectionRequest, record.value)
        except InvalidInputError:
            return None
        if request.wait_for_session is None or not request.wait_ms:
            return None
        return self._sessions(
            request.tenant_id, request.wait_for_session, seconds=request.wait_ms / _MS_PER_SECOND
        )


def injection_request(request: wire.InjectionRequest) -> InjectionRequest:
    """Return ``request`` in the domain's terms; a session that is waited for has been by then."""
    return InjectionRequest(
        tenant_id=request.tenant_id,
        user=user_of(request),
        avatar_id=avatar_of(request),
        mode=InjectionMode(request.mode),
        query=request.query,
        char_budget=request.char_budget,
        token_budget=request.token_budget,
        as_of=moment_of(request.as_of),
    )


def injection_body(injection: Injection) -> dict[str, Any]:
    """Return ``injection`` as callers read it (``schemas/injection.py``)."""
    return {
        "text": injection.text,
        "facts_count": injection.facts_count,
        "applied": injection.applied,
        "included": [
            {"fact_id": fact.fact_id, "score": fact.score, "reason": fact.reason}
            for fact in injection.included
        ],
        "omitted": dict(injection.omitted),
        "pending_sessions": [
            {"session_id": pending.session_id, "status": pending.status} for pending in injection.pending
        ],
        "clarifications": [],
        "tokens_estimate": injection.tokens_estimate,
        "fingerprint": injection.fingerprint,
        "as_of": injection.as_of,
    }
