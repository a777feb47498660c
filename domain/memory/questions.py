"""Which pairs of claims a judge is asked about: a function of the set of claims, never of who came first.

A question shows two texts and their slot, in canonical order, and no times: so the answer can be cached for
the pair, and the same statements lead to the same answers in every order of arrival.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import combinations
from typing import NamedTuple, Protocol

from domain.memory.assertions import Authority, Claim, Judgement, Verdict
from domain.memory.slots import Slot, arity_of
from domain.memory.values import EVERYTHING, must_differ
from domain.memory.vocabulary import Arity

Near = Callable[[Claim, Claim], bool]


class Question(NamedTuple):
    """A pair to be judged, left before right."""

    left: Claim
    right: Claim


def questions(claims: Iterable[Claim], answered: Set[tuple[Claim, Claim]], near: Near) -> Iterator[Question]:
    """Yield the pairs of one slot that ``near`` nominates, no guard decides and nobody has answered."""
    by_slot: dict[Slot, set[Claim]] = defaultdict(set)
    for claim in claims:
        if claim.norm != EVERYTHING and arity_of(claim.slot) is not Arity.EVENT:
            by_slot[claim.slot].add(Claim(claim.slot, claim.norm))
    for slot in sorted(by_slot):
        for pair in combinations(sorted(by_slot[slot]), 2):
            if pair not in answered and must_differ(pair[0].norm, pair[1].norm) is None and near(*pair):
                yield Question(*pair)


class Judge(Protocol):
    """Answers questions about pairs of values; rules and models are judges."""

    def __call__(self, question: Question, /) -> Verdict | None:
        """Return what holds of the pair, or None where this judge cannot tell."""
        ...


def answers(asked: Iterable[Question], judge: Judge, authority: Authority) -> Iterator[Judgement]:
    """Yield what ``judge`` can tell about each question, ready to be kept."""
    for question in asked:
        verdict = judge(question)
        if verdict is not None:
            yield Judgement(left=question.left, right=question.right, verdict=verdict, authority=authority)
