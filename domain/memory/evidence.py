"""From candidates to assertions: what a session said, as rows of evidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.candidates import Candidate
from domain.memory.assertions import Assertion, Claim, Scope, claim_id
from domain.memory.questions import judged_claim
from domain.memory.slots import EVERYWHERE, SELF, Slot, about_of, read_key
from domain.memory.stances import Stance
from domain.memory.values import EVERYTHING, normalise

_LONGEST_SUBJECT: Final = 100
_DIGITS: Final = 4


def assertions_of(
    scope: Scope, session_id: UUID | str, generation: str, candidates: Sequence[Candidate]
) -> list[Assertion]:
    """Return the evidence in ``candidates``, which come in the order in which they were said.

    A candidate without a value, or that holds "everything", says nothing and is left out; a validity that
    ends before it begins loses its beginning. "Forget everything" is a statement about every slot.
    """
    found = (
        _assertion(scope, str(session_id), generation, position, candidate)
        for position, candidate in enumerate(candidates)
    )
    return [one for one in found if one is not None]


def claims_by_id(assertions: Iterable[Assertion]) -> Mapping[UUID, Claim]:
    """Return the claims behind the ids that are stored in judgements and retractions.

    A judgement names the claim that holds, whether the value was held, denied or planned.
    """
    found = {claim_id(one.scope, judged_claim(one.claim)): judged_claim(one.claim) for one in assertions}
    return {**found, **{claim_id(one.scope, one.claim): one.claim for one in assertions}}


@dataclass(frozen=True, slots=True)
class _Validity:
    start: datetime | None
    end: datetime | None


def _assertion(
    scope: Scope, session_id: str, generation: str, position: int, candidate: Candidate
) -> Assertion | None:
    slot, implied = _slot(candidate)
    stance = _stance(candidate.stance, implied)
    if stance is None or not _says_something(candidate.value, stance):
        return None
    valid = _validity(candidate)
    return Assertion(
        scope=scope,
        session_id=session_id,
        generation=generation,
        position=position,
        said_at=candidate.said_at,
        slot=slot,
        value=candidate.value,
        stance=stance,
        amends=candidate.amends,
        valid_from=valid.start,
        valid_to=valid.end,
        expires_at=_zoned(candidate.expires_at, candidate.said_at),
        confidence=round(candidate.confidence, _DIGITS),
        importance=round(candidate.importance, _DIGITS),
        category=candidate.category,
        asserted_by=candidate.asserted_by,
        message_ids=candidate.message_ids,
        method=candidate.method.value,
        content=candidate.content,
        excerpt=candidate.excerpt,
        model=candidate.model,
        spec_version=candidate.spec_version,
        reasoning=candidate.reasoning,
    )


def _slot(candidate: Candidate) -> tuple[Slot, Stance | None]:
    """Return the slot that ``candidate`` is about, and the stance that its key implies."""
    about = _about(candidate.about)
    if (candidate.key, about, candidate.stance) == (EVERYTHING, SELF, Stance.FORGETS):
        return EVERYWHERE, None
    return read_key(candidate.key, about, candidate.qualifier)


def _about(about: str) -> str:
    """Name the subject in one spelling; the user in any of the ways a model names them is ``self``."""
    if normalise(about) in ("", SELF, "user", "the user", "me"):
        return SELF
    relation, _, name = about.partition("/")
    return about_of(relation, name)[:_LONGEST_SUBJECT].strip()


def _stance(said: Stance, implied: Stance | None) -> Stance | None:
    """Join what the statement and its key say; there is no "used to dislike" in the model."""
    if implied is Stance.DENIES and said in (Stance.HELD, Stance.PLANS):
        return None
    return implied if implied is not None and said is Stance.HOLDS else said


def _says_something(value: str, stance: Stance) -> bool:
    norm = normalise(value)
    return bool(norm) and (norm != EVERYTHING or stance in (Stance.DENIES, Stance.FORGETS))


def _validity(candidate: Candidate) -> _Validity:
    start = _zoned(candidate.valid_from, candidate.said_at)
    end = _zoned(candidate.valid_to, candidate.said_at)
    return (
        _Validity(None, end)
        if start is not None and end is not None and end < start
        else _Validity(start, end)
    )


def _zoned(time: datetime | None, said_at: datetime) -> datetime | None:
    """Read a time without a zone in the zone of the statement."""
    return time.replace(tzinfo=said_at.tzinfo) if time is not None and time.tzinfo is None else time
