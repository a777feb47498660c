"""Candidates of one session among themselves: what was said twice joins, what differs is left to the fold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from domain.candidates import Candidate
from domain.memory.slots import slot_of
from domain.memory.values import normalise
from domain.memory.vocabulary import Arity, Vocabulary
from domain.rules.statements import POSITIONS_PER_MESSAGE

_RELATIVE: Final = "relative"


def settle(found: Sequence[Candidate], vocabulary: Vocabulary) -> list[Candidate]:
    """Join repeats, in the order in which they were said, and drop a bare relative that more is known of."""
    kept: list[Candidate] = []
    latest: dict[tuple[str, ...], int] = {}
    for candidate in found:
        identity = _identity(candidate, vocabulary)
        place = latest.get(identity)
        if place is not None and _is_repeat(kept[place], candidate):
            kept[place] = _joined(kept[place], candidate)
            continue
        latest[identity] = len(kept)
        kept.append(candidate)
    return _without_bare_relatives(kept)


def numbered(found: Sequence[Candidate], position: int) -> list[Candidate]:
    """Give the candidates of the message at ``position`` their places in the session."""
    first = position * POSITIONS_PER_MESSAGE
    most = POSITIONS_PER_MESSAGE - 1
    return [replace(one, position=first + min(index, most)) for index, one in enumerate(found)]


def _identity(candidate: Candidate, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Name what a repeat has in common: in a slot of one value the order of its values must stay, A, B, A."""
    slot = slot_of(candidate.key, candidate.about, candidate.qualifier)
    kind = vocabulary.find(candidate.key)
    is_single = kind is not None and kind.arity is Arity.ONE
    return (slot.key, slot.about, slot.qualifier, "" if is_single else normalise(candidate.value))


def _is_repeat(old: Candidate, new: Candidate) -> bool:
    return (
        normalise(old.value) == normalise(new.value)
        and old.stance is new.stance
        and new.amends is None
        and (new.valid_from is None or new.valid_from == old.valid_from)
    )


def _joined(old: Candidate, new: Candidate) -> Candidate:
    better = old if old.confidence >= new.confidence else new
    return replace(
        old,
        confidence=better.confidence,
        content=better.content,
        excerpt=better.excerpt,
        reasoning=better.reasoning,
        message_ids=tuple(dict.fromkeys(old.message_ids + new.message_ids)),
    )


def _without_bare_relatives(kept: Sequence[Candidate]) -> list[Candidate]:
    """Drop "has a wife" where her name is known; "has two brothers" says more and stays."""
    told = {one.about.partition("/")[0] for one in kept if one.key != _RELATIVE}
    return [one for one in kept if not (one.key == _RELATIVE and one.about in told and " " not in one.value)]
