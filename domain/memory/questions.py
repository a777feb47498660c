"""Which pairs of claims a judge is asked about: a function of the set of claims, never of who came first.

A question shows two texts and their slot, in canonical order, and no times: so the answer can be kept for
the pair, and the same statements lead to the same answers in every order of arrival.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

from domain.memory.assertions import Claim
from domain.memory.slots import Slot, arity_of
from domain.memory.values import EVERYTHING, must_differ
from domain.memory.vocabulary import Arity

Near = Callable[[Claim, Claim], bool]


class Question(NamedTuple):
    """A pair to be judged, left before right."""

    left: Claim
    right: Claim


def questions(
    claims: Iterable[Claim],
    answered: Set[tuple[Claim, Claim]],
    near: Near,
    *,
    raised_by: Iterable[Claim] | None = None,
) -> Iterator[Question]:
    """Yield the pairs of one slot that ``near`` nominates, no guard decides and nobody has answered.

    With ``raised_by``, only pairs of which one side is among those claims.
    """
    by_slot = _by_slot(claims)
    raising = by_slot if raised_by is None else _by_slot(raised_by)
    for slot in sorted(by_slot.keys() & raising.keys()):
        pairs = {
            Question(min(one, other), max(one, other))
            for one in raising[slot]
            for other in by_slot[slot]
            if one != other
        }
        for pair in sorted(pairs):
            if pair not in answered and must_differ(pair.left.norm, pair.right.norm) is None and near(*pair):
                yield pair


def judged_claim(claim: Claim) -> Claim:
    """Return the claim under which ``claim`` is judged: a verdict is about values, whatever their mode."""
    return Claim(claim.slot, claim.norm)


def is_judged(claim: Claim) -> bool:
    """Say whether anything can be asked about ``claim``: not of everything, nor of dated happenings."""
    return claim.norm != EVERYTHING and arity_of(claim.slot) is not Arity.EVENT


def _by_slot(claims: Iterable[Claim]) -> dict[Slot, set[Claim]]:
    found: dict[Slot, set[Claim]] = defaultdict(set)
    for claim in filter(is_judged, claims):
        found[claim.slot].add(judged_claim(claim))
    return found
