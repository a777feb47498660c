"""The promises of the fold, tried on random histories: commands, ids, differences, questions."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from domain.memory.assertions import (
    Assertion,
    Claim,
    Corrects,
    Judgement,
    Merge,
    Mode,
    Retraction,
    RetractionKind,
    Rivals,
    Same,
    SlotLink,
    Stance,
)
from domain.memory.changes import (
    Created,
    Deleted,
    Erased,
    Merged,
    Reinforced,
    Restored,
    Revised,
    Superseded,
    difference,
)
from domain.memory.fold import Opinion, fold, served
from domain.memory.keys import canonical_key
from domain.memory.projection import Fact, Status, meaning
from domain.memory.questions import questions
from domain.memory.slots import Slot, arity_of, slot_of
from domain.memory.values import normalise
from domain.memory.vocabulary import Arity
from tests.unit.memory.builders import SCOPE, said
from tests.unit.memory.histories import (
    CITY,
    COMMANDS,
    DAYS,
    DIET,
    EPOCH,
    FRESH,
    LIKES,
    OPINIONS,
    SESSIONS,
    SLOTS,
    TARGETS,
    History,
    Taken,
    Told,
    edits,
    statements,
)

NARROW = statements((CITY, LIKES), ("a", "b"), (Stance.HOLDS, Stance.DENIES), plain=True)


@given(NARROW | statements(), OPINIONS, COMMANDS, st.sampled_from((CITY, LIKES)), DAYS)
def test_what_was_forgotten_stays_so_until_it_is_said_again(
    told: Told, opinions: list[Opinion], commands: Taken, slot: Slot, day: int
) -> None:
    opinions = [one for one in opinions if not isinstance(one, SlotLink)]
    commands = [one for one in commands if one.kind is not RetractionKind.RESTORE]
    forget = Retraction(target=slot, at=EPOCH + timedelta(days=day, hours=12))
    later = [one for one in told if one.said_at > forget.at]

    def said_again(fact: Fact) -> bool:
        mine = [one for one in later if one.assertion_id in fact.evidence]
        return len({one.session_id for one in mine}) > 1 or any(one.confidence > 0.6 for one in mine)

    state = fold(told, opinions, [*commands, forget])
    again = Assertion(
        scope=SCOPE, position=0, slot=slot, value="a", said_at=EPOCH + timedelta(days=90), **FRESH
    )
    returned = fold([*told, again], opinions, [*commands, forget])

    assert all(said_again(fact) for fact in state.active() if fact.slot == slot)
    assert any(
        again.assertion_id in fact.evidence
        for fact in returned.facts.values()
        if fact.status is Status.ACTIVE or fact.merged_into is not None
    )


@given(statements(), OPINIONS, TARGETS, DAYS)
def test_forgotten_and_restored_is_as_if_nothing_happened(
    told: Told, opinions: list[Opinion], target: UUID | Slot, day: int
) -> None:
    when = EPOCH + timedelta(days=day, hours=12)
    both = [
        Retraction(target=target, at=when, kind=RetractionKind.FORGET),
        Retraction(target=target, at=when + timedelta(days=40), kind=RetractionKind.RESTORE),
    ]
    told = [one for one in told if one.stance is not Stance.FORGETS]

    assert fold(told, opinions, both) == fold(told, opinions)


@given(statements(plain=True), st.sampled_from(SLOTS))
def test_disowned_evidence_counts_as_never_said(told: Told, slot: Slot) -> None:
    disown = Retraction(target=slot, at=EPOCH + timedelta(days=60), kind=RetractionKind.DISOWN)

    state = fold(told, (), [disown])

    assert state.facts == fold([one for one in told if one.slot != slot]).facts


@given(statements(), OPINIONS, COMMANDS)
def test_a_judgement_about_what_nobody_says_any_more_has_no_effect(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    said_now = {(one.slot, one.claim.norm) for one in told}

    def speaks(side: Claim) -> bool:
        return (side.slot, side.norm) in said_now or side.norm in texts

    texts = {
        normalise(o.verdict.text)
        for o in opinions
        if isinstance(o, Judgement) and isinstance(o.verdict, Merge)
    }
    live = [one for one in opinions if isinstance(one, SlotLink) or (speaks(one.left) and speaks(one.right))]

    assert fold(told, live, commands) == fold(told, opinions, commands)


@given(statements(), OPINIONS, DAYS)
def test_ids_stay_when_newer_things_are_said(told: Told, opinions: list[Opinion], day: int) -> None:
    told = [one for one in told if not isinstance(one.amends, Corrects)]
    cut = EPOCH + timedelta(days=day)
    earlier = [one for one in told if one.said_at < cut]
    live = {(one.slot, one.claim.norm) for one in earlier}
    judged = [one for one in opinions if isinstance(one, Judgement)]
    judged = [j for j in judged if {(j.left.slot, j.left.norm), (j.right.slot, j.right.norm)} <= live]

    before, after = fold(earlier, judged), fold(told, judged)

    assert before.facts.keys() <= after.facts.keys()


@given(statements(slots=(CITY, LIKES), values=("a", "b")), DAYS)
def test_ids_stay_when_another_wording_joins(told: Told, day: int) -> None:
    told = [one for one in told if not isinstance(one.amends, Corrects)]
    same = [
        Judgement(left=Claim(slot, "a"), right=Claim(slot, "b"), verdict=Same()) for slot in (CITY, LIKES)
    ]
    earlier = [one for one in told if one.said_at < EPOCH + timedelta(days=day)]

    assert fold(earlier, same).facts.keys() <= fold(told, same).facts.keys()


def test_a_late_older_wording_renames_its_fact_and_the_old_id_can_be_followed() -> None:
    same: list[Opinion] = [Judgement(left=Claim(CITY, "nyc"), right=Claim(CITY, "new york"), verdict=Same())]
    later, earlier = said("2024-01-01", CITY, "NYC"), said("2023-01-01", CITY, "New York")
    before, after = fold([later], same), fold([later, earlier], same)
    (old,), (new,) = before.facts.values(), after.facts.values()

    assert difference(before, after) == [Merged(old.fact_id, new.fact_id, None), Created(new)]
    assert old.fact_id in new.names


@given(statements(), statements(), OPINIONS, COMMANDS)
def test_an_old_id_can_always_be_followed(
    told: Told, others: Told, opinions: list[Opinion], commands: Taken
) -> None:
    others = [replace(one, session_id=f"x{one.session_id}", amends=None) for one in others]
    # What a command disowns goes; a link that a new statement brings to life widens what a command reaches.
    commands = [one for one in commands if one.kind is not RetractionKind.DISOWN]
    before, after = fold(told, opinions, commands), fold([*told, *others], opinions, commands)

    names = {name for fact in after.facts.values() for name in fact.names}

    assert before.facts.keys() <= names | after.pending.keys()


@given(edits())
def test_the_difference_leads_from_one_state_to_the_other(history: History) -> None:
    states = [fold(*one) for one in history]
    for before, after in pairwise(states):
        rows = dict(before.facts)
        for change in difference(before, after):
            match change:
                case Erased(fact_id) | Merged(fact_id, _, None):
                    del rows[fact_id]
                case Merged(_, _, Fact() as fact):
                    rows[fact.fact_id] = fact
                case (
                    Created(fact)
                    | Reinforced(fact)
                    | Revised(fact)
                    | Superseded(fact)
                    | Deleted(fact)
                    | Restored(fact)
                ):
                    rows[fact.fact_id] = fact
                case _:
                    pass
        assert rows == after.facts
    assert all(not difference(state, state) for state in states)


@given(statements(slots=(CITY, DIET)), OPINIONS, COMMANDS)
def test_a_single_value_slot_has_one_value(told: Told, opinions: list[Opinion], commands: Taken) -> None:
    told = [replace(one, expires_at=None, amends=None) for one in told if one.norm != "a, b"]
    opinions = [
        one for one in opinions if isinstance(one, Judgement) and isinstance(one.verdict, Same | Rivals)
    ]

    active = fold(told, opinions, commands).active()

    for slot in (CITY, DIET):
        assert len([one for one in active if one.slot == slot and one.mode is Mode.HOLDS]) <= 1


@given(st.text(max_size=80))
@example("ﬀ İ ß \u210c \u0399\u0344")
def test_normal_form_and_keys_are_stable(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert canonical_key(canonical_key(text)) == canonical_key(text)
    assert slot_of(text) == slot_of(slot_of(text).key)


@given(statements(), OPINIONS, COMMANDS)
def test_reprocessing_with_the_same_outcome_changes_no_fact(
    told: Told, opinions: list[Opinion], commands: Taken
) -> None:
    again = [replace(one, generation="g2") for one in told]
    both = [*told, *again]

    live, shadow = (
        fold(served(both, dict.fromkeys(SESSIONS, g)), opinions, commands) for g in ("live", "g2")
    )

    assert meaning(live) == meaning(shadow)


@given(
    st.permutations(
        [Claim(LIKES, value) for value in ("red tea", "tea", "5 teas", "no tea", "cat tea", "teas")]
    )
)
def test_the_questions_do_not_depend_on_who_came_first(claims: list[Claim]) -> None:
    def near(one: Claim, other: Claim) -> bool:
        return abs(len(one.norm) - len(other.norm)) < 5

    asked: set[tuple[Claim, Claim]] = set()
    for size in range(len(claims) + 1):
        asked |= {(one.left, one.right) for one in questions(claims[:size], asked, near)}

    assert asked == {(one.left, one.right) for one in questions(claims, set(), near)}
    assert {frozenset((one.norm, other.norm)) for one, other in asked} == {
        frozenset(("red tea", "tea")),
        frozenset(("red tea", "teas")),
        frozenset(("tea", "teas")),
    }


def test_arities_of_the_vocabulary() -> None:
    assert [arity_of(slot) for slot in SLOTS] == [
        Arity.ONE,
        Arity.ONE,
        Arity.MANY,
        Arity.EVENT,
        Arity.FREE,
        Arity.FREE,
    ]
