"""Judging: which pairs that a session raises are put to a judge, in one call, and what comes of it.

Distance only nominates. The answer is kept for the pair and enters through the fold; a judge that is away is
asked later, and an answer that cannot be read judges nothing (docs/architecture/judging.md).
"""

import logging
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import mul
from typing import Final
from uuid import UUID

from domain.errors import ModelRefusedError, ModelUnavailableError, UnreadableAnswerError
from domain.memory.assertions import Authority, Claim, Judgement, Scope, claim_id
from domain.memory.gists import Gist
from domain.memory.questions import Question, is_judged, judged_claim, questions
from domain.ports import Judge, Usage

logger = logging.getLogger(__name__)

_MOST_QUESTIONS: Final = 24

Vectors = Mapping[Claim, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClaims:
    """What is stored of some slots: their claims with the vectors of these.

    ``answered`` are the pairs that a model or a person judged, by the ids of ``judged_claim``.
    """

    vectors: Vectors = field(default_factory=dict)
    answered: frozenset[frozenset[UUID]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What a judge was asked and said.

    ``is_owed`` says that questions stay open which are to be asked later; ``is_away`` that the judge could
    not be reached. ``seen`` are the claims that were looked at, None where no judge is asked at all.
    """

    judgements: tuple[Judgement, ...] = ()
    asked: int = 0
    usage: Usage = field(default_factory=Usage)
    judge: str = ""
    is_owed: bool = False
    is_away: bool = False
    seen: frozenset[Claim] | None = None


class AskJudge:
    """Puts the open questions of a session to a judge, all in one call."""

    def __init__(self, *, judge: Judge, gist: Gist, distance: float, nearest: int) -> None:
        """``distance`` is the cosine distance that nominates; ``nearest`` how many rivals of one claim."""
        self._judge = judge
        self._gist = gist
        self._distance = distance
        self._nearest = nearest

    async def __call__(
        self, scope: Scope, raised: Vectors, known: KnownClaims, *, ask: bool = True
    ) -> Judging:
        """Ask what ``raised`` claims have open among themselves and against ``known``.

        Without ``ask`` the questions are only counted as owed: whoever just found the model away knows.
        """
        seen = frozenset(map(judged_claim, (*raised, *known.vectors)))
        wanted, is_cut = self._wanted(scope, raised, known)
        if not wanted:
            return Judging(seen=seen)
        if not ask:
            return Judging(seen=seen, is_owed=True, is_away=True)
        try:
            judged = await self._judge.judge(wanted)
        except ModelUnavailableError:
            return Judging(seen=seen, is_owed=True, is_away=True)
        except (UnreadableAnswerError, ModelRefusedError) as exc:
            logger.warning("%d questions stay open: %s", len(wanted), exc)
            return Judging(seen=seen, asked=len(wanted))
        return Judging(
            judgements=tuple(
                Judgement(left=pair.left, right=pair.right, verdict=verdict, authority=Authority.MODEL)
                for pair, verdict in judged.verdicts.items()
            ),
            asked=len(wanted),
            usage=judged.usage,
            judge=judged.judge,
            # What was cut off is asked next, as long as answers come.
            is_owed=is_cut and bool(judged.verdicts),
            seen=seen,
        )

    def _wanted(self, scope: Scope, raised: Vectors, known: KnownClaims) -> tuple[Sequence[Question], bool]:
        """Return the questions of this call, and whether there are more: a budget, never a criterion."""
        vectors = _by_judged_claim((*known.vectors.items(), *raised.items()))
        found = [
            pair
            for pair in questions(
                vectors,
                frozenset(),
                lambda one, other: distance(vectors[one], vectors[other]) <= self._distance,
                raised_by=raised,
            )
            if frozenset(claim_id(scope, one) for one in pair) not in known.answered
            and self._gist(pair.left.slot, pair.left.norm) != self._gist(pair.right.slot, pair.right.norm)
        ]
        ranked = sorted(found, key=lambda pair: (distance(vectors[pair.left], vectors[pair.right]), pair))
        chosen = list(self._within_budget(ranked))
        return sorted(chosen), len(chosen) < len(found)

    def _within_budget(self, ranked: Iterable[Question]) -> Iterator[Question]:
        rivals: Counter[Claim] = Counter()
        taken = 0
        for pair in ranked:
            if taken < _MOST_QUESTIONS and max(rivals[pair.left], rivals[pair.right]) < self._nearest:
                rivals.update(pair)
                taken += 1
                yield pair


def can_raise(claims: Iterable[Claim]) -> bool:
    """Say whether any of ``claims`` can raise a question."""
    return any(map(is_judged, claims))


def distance(one: bytes | None, other: bytes | None) -> float:
    """Return the cosine distance of two vectors of length one; without a vector nothing is near."""
    if one is None or other is None or len(one) != len(other):
        return float("inf")
    cosine: float = sum(map(mul, _numbers(one), _numbers(other)))
    return 1.0 - cosine


@lru_cache(maxsize=4096)
def _numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 2}e", vector)


def _by_judged_claim(found: Iterable[tuple[Claim, bytes | None]]) -> dict[Claim, bytes | None]:
    """Join the modes of a value: the vector of what holds comes before that of a denial or plan."""
    vectors: dict[Claim, bytes | None] = {}
    for claim, vector in sorted(found, key=lambda item: (item[0] == judged_claim(item[0]), item[0])):
        if vector is not None or judged_claim(claim) not in vectors:
            vectors[judged_claim(claim)] = vector
    return vectors
