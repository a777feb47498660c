"""Which pairs are put to a judge, and what becomes of what it says."""

import struct
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ModelRefusedError, ModelUnavailableError, UnreadableAnswerError
from domain.judging import AskJudge, KnownClaims, distance
from domain.memory.assertions import Authority, Claim, Compatible, Same, Scope, Verdict, claim_id
from domain.memory.questions import Question
from domain.memory.slots import Slot, slot_of
from domain.memory.stances import Mode
from domain.ports import Judged, Usage

pytestmark = pytest.mark.anyio

SCOPE = Scope(tenant="acme", user="ana", avatar="nil")
LIKES = slot_of("likes")
NEAR, FAR = struct.pack("<2e", 1.0, 0.0), struct.pack("<2e", 0.0, 1.0)


class ScriptedJudge:
    """Says one thing about every pair, and notes what it was asked."""

    def __init__(self, says: Verdict | Exception | None = Same()) -> None:  # noqa: B008 - a value
        self._says = says
        self.asked: list[Sequence[Question]] = []

    async def judge(self, questions: Sequence[Question]) -> Judged:
        self.asked.append(questions)
        if isinstance(self._says, Exception):
            raise self._says
        verdicts = {} if self._says is None else dict.fromkeys(questions, self._says)
        return Judged(verdicts=verdicts, usage=Usage(model_calls=1), judge="openai/tiny")


def asking(judge: ScriptedJudge, *, gist: Callable[[Slot, str], str] = lambda _, norm: norm) -> AskJudge:
    return AskJudge(judge=judge, gist=gist, distance=0.3, nearest=5)


def likes(*values: str, vector: bytes | None = NEAR) -> dict[Claim, bytes | None]:
    return dict.fromkeys((Claim(LIKES, value) for value in values), vector)


async def test_all_rivals_of_a_session_are_asked_in_one_call() -> None:
    judge = ScriptedJudge()

    found = await asking(judge)(SCOPE, likes("tea", "coffee"), KnownClaims(vectors=likes("chai")))

    assert [[(one.left.norm, one.right.norm) for one in call] for call in judge.asked] == [
        [("chai", "coffee"), ("chai", "tea"), ("coffee", "tea")]
    ]
    assert {one.authority for one in found.judgements} == {Authority.MODEL}
    assert (len(found.judgements), found.asked, found.usage.model_calls, found.is_owed) == (3, 3, 1, False)


@given(st.permutations(("tea", "coffee", "chai", "mate")), st.integers(0, 4))
async def test_what_is_asked_does_not_depend_on_who_came_first(values: Sequence[str], split: int) -> None:
    every = ScriptedJudge()
    await asking(every)(SCOPE, likes(*sorted(values)), KnownClaims())
    first, then = likes(*values[:split]), likes(*values[split:])
    in_two = ScriptedJudge()

    await asking(in_two)(SCOPE, first, KnownClaims())
    await asking(in_two)(SCOPE, then, KnownClaims(vectors=first))

    assert {one for call in in_two.asked for one in call} == set(every.asked[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [("4 cats", "5 cats"), ("tea", "no tea"), ("wife's tea", "sister's tea")],
    ids=["numbers", "negation", "relation"],
)
async def test_what_a_guard_decides_is_not_asked(one: str, other: str) -> None:
    judge = ScriptedJudge()

    found = await asking(judge)(SCOPE, likes(one, other), KnownClaims())

    assert (judge.asked, found.judgements) == ([], ())


async def test_what_is_far_apart_or_has_no_vector_or_is_one_by_rules_is_not_asked() -> None:
    judge = ScriptedJudge()

    await asking(judge)(SCOPE, likes("tea") | likes("skiing", vector=FAR), KnownClaims())
    await asking(judge)(SCOPE, likes("tea"), KnownClaims(vectors=likes("chai", vector=None)))
    await asking(judge, gist=lambda _, norm: norm.rstrip("s"))(SCOPE, likes("tea", "teas"), KnownClaims())

    assert judge.asked == []


async def test_a_pair_is_asked_once_whatever_its_modes() -> None:
    judge = ScriptedJudge()
    ids = frozenset(claim_id(SCOPE, one) for one in likes("tea", "chai"))
    denied: dict[Claim, bytes | None] = {Claim(LIKES, "tea", Mode.DENIES): NEAR}

    await asking(judge)(SCOPE, denied, KnownClaims(vectors=likes("chai")))
    await asking(judge)(SCOPE, denied, KnownClaims(vectors=likes("chai"), answered=frozenset({ids})))

    assert judge.asked == [[Question(Claim(LIKES, "chai"), Claim(LIKES, "tea"))]]


async def test_who_is_away_is_asked_later_and_who_is_not_understood_judges_nothing() -> None:
    away = await asking(ScriptedJudge(ModelUnavailableError("away")))(SCOPE, likes("a", "b"), KnownClaims())
    unread = await asking(ScriptedJudge(UnreadableAnswerError("?")))(SCOPE, likes("a", "b"), KnownClaims())
    refused = await asking(ScriptedJudge(ModelRefusedError("no")))(SCOPE, likes("a", "b"), KnownClaims())

    assert [(one.judgements, one.is_owed, one.is_away) for one in (away, unread, refused)] == [
        ((), True, True),
        ((), False, False),
        ((), False, False),
    ]


async def test_who_just_found_the_model_away_does_not_ask_it_again() -> None:
    judge = ScriptedJudge()

    found = await asking(judge)(SCOPE, likes("tea", "chai"), KnownClaims(), ask=False)

    assert (judge.asked, found.is_owed) == ([], True)


async def test_more_than_one_call_can_hold_is_asked_next_as_long_as_answers_come() -> None:
    values = [f"tea {letter}" for letter in "abcdefghijklmnop"]
    answered: frozenset[frozenset[object]] = frozenset()
    judge = ScriptedJudge(Compatible())
    owed = True

    for _ in range(len(values)):
        if not owed:
            break
        known = KnownClaims(vectors=likes(*values), answered=answered)  # type: ignore[arg-type]
        found = await asking(judge)(SCOPE, likes(*values), known)
        answered |= {frozenset(claim_id(SCOPE, one) for one in judged.pair) for judged in found.judgements}
        owed = found.is_owed
    silent = await asking(ScriptedJudge(None))(SCOPE, likes(*values), KnownClaims())

    assert len(answered) == len(values) * (len(values) - 1) // 2
    assert max(len(call) for call in judge.asked) <= 24
    assert silent.is_owed is False


def test_distance_is_that_of_the_angle() -> None:
    assert [distance(NEAR, NEAR), distance(NEAR, FAR)] == [0.0, 1.0]
    assert distance(NEAR, None) == distance(None, NEAR) == distance(NEAR, NEAR + NEAR) == float("inf")
