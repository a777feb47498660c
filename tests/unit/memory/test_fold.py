"""The promises of the fold, tried on random histories: order, repetition, time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from domain.memory.assertions import (
    Also,
    Assertion,
    Corrects,
    Judgement,
    Mode,
    Retraction,
    RetractionKind,
    Rivals,
    Stance,
    claim_id,
)
from domain.memory.fold import Opinion, affected, fold, refold
from domain.memory.projection import Fact, State, Status
from domain.memory.slots import EVERYWHERE, Slot
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
    RUNS,
    History,
    Taken,
    Told,
    edits,
    statements,
)


@given(statements(), OPINIONS, COMMANDS, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(
    told: Told, opinions: list[Opinion], commands: Taken, random: Random
) -> None:
    mixed = told + random.sample(told, random.randint(0, len(told)))
    random.shuffle(mixed)

    state = fold(mixed, random.sample(opinions, len(opinions)), random.sample(commands, len(commands)))

    assert state == fold(told, opinions, commands)


@given(edits() | edits(coupled=True))
def test_folding_only_what_was_touched_is_the_same_as_folding_all(history: History) -> None:
    state = State()
    held: set[Assertion] = set()
    judged: set[Opinion] = set()
    taken: set[Retraction] = set()
    for told, opinions, commands in history:
        touched = (
            {one.slot for one in told ^ held}
            | slots_of(opinions ^ judged)
            | targets_of(commands ^ taken, told)
        )
        wanted = affected(touched, ({a.slot for a in held}, judged), ({a.slot for a in told}, opinions))
        part = fold((a for a in told if a.slot in wanted), opinions, commands)
        state, held, judged, taken = refold(state, wanted, part), told, opinions, commands

        assert state == fold(told, opinions, commands)


def slots_of(opinions: set[Opinion]) -> set[Slot]:
    sides = {side for one in opinions for side in (one.left, one.right)}
    return {side if isinstance(side, Slot) else side.slot for side in sides}


def targets_of(commands: set[Retraction], told: set[Assertion]) -> set[Slot]:
    named = {claim_id(SCOPE, one.claim): one.slot for one in told}
    return {one.target if isinstance(one.target, Slot) else named.get(one.target, CITY) for one in commands}


def test_erasing_the_last_statement_of_a_slot_reaches_what_it_had_ended() -> None:
    vegetarian, steak = said("2023-01-01", DIET, "vegetarian"), said("2024-01-01", LIKES, "steak")
    opinions: list[Opinion] = [Judgement(left=vegetarian.claim, right=steak.claim, verdict=Rivals())]
    before = fold([vegetarian, steak], opinions)

    wanted = affected([LIKES], ({DIET, LIKES}, opinions), ({DIET}, opinions))

    assert wanted == {DIET, LIKES, EVERYWHERE}
    assert [fact.value for fact in refold(before, wanted, fold([vegetarian], opinions)).active()] == [
        "vegetarian"
    ]


def test_an_opinion_that_goes_reaches_everything_it_held_together() -> None:
    one, two, three = (said(f"202{n}-01-01", slot, "a").claim for n, slot in enumerate((DIET, LIKES, RUNS)))
    chain: list[Opinion] = [
        Judgement(left=one, right=two, verdict=Rivals()),
        Judgement(left=two, right=three, verdict=Rivals()),
    ]
    slots = {DIET, LIKES, RUNS}

    assert affected([DIET], (slots, chain), (slots, chain[1:])) == {*slots, EVERYWHERE}
    assert affected([DIET], (slots, chain[1:]), (slots, chain[1:])) == {DIET, EVERYWHERE}


@given(statements(), OPINIONS, COMMANDS, DAYS)
def test_forget_everything_hides_what_was_said_before_it_in_every_slot(
    told: Told, opinions: list[Opinion], commands: Taken, day: int
) -> None:
    commands = [one for one in commands if one.kind is not RetractionKind.RESTORE]
    sweep = said(EPOCH + timedelta(days=day, hours=12), EVERYWHERE, "*", stance=Stance.FORGETS, session="sw")
    later = {one.assertion_id for one in told if one.order > sweep.order}

    state = fold([*told, sweep], opinions, commands)

    assert all(later & set(fact.evidence) for fact in state.active())
    assert all(later & set(one.evidence) for one in state.pending.values())


@given(statements(), OPINIONS, COMMANDS)
def test_no_statement_is_lost(told: Told, opinions: list[Opinion], commands: Taken) -> None:
    state = fold(told, opinions, commands)

    facts = [one for fact in state.facts.values() for one in fact.evidence]
    pending = [one for candidate in state.pending.values() for one in candidate.evidence]
    assert sorted([*facts, *pending, *state.unused]) == sorted(one.assertion_id for one in told)


@given(statements(), OPINIONS)
def test_without_corrections_and_commands_all_evidence_is_in_facts_or_pending(
    told: Told, opinions: list[Opinion]
) -> None:
    kept = [one for one in told if not isinstance(one.amends, Corrects) and one.stance is not Stance.FORGETS]

    assert not fold(kept, opinions).unused


def last_word(told: Sequence[Assertion], fact: Fact) -> Assertion | None:
    """Return the last confident present statement behind ``fact``."""
    mine = [one for one in told if one.assertion_id in set(fact.evidence) and one.confidence >= 0.65]
    return max((one for one in mine if one.effect is Stance.HOLDS), key=lambda one: one.order, default=None)


CITIES = statements(slots=(CITY,), values=("a", "b", "c", "x 15"))


@given(CITIES, CITIES, COMMANDS, DAYS)
def test_an_old_statement_that_comes_late_never_changes_the_current_value(
    told: Told, others: Told, commands: Taken, day: int
) -> None:
    told = [timeless(one) for one in told]
    told += [
        replace(one, said_at=EPOCH + timedelta(days=day), **{**FRESH, "value": "a"}) for one in others[:1]
    ]
    held = [fact for fact in fold(told, (), commands).active() if fact.mode is Mode.HOLDS]
    word = last_word(told, held[0]) if held else None
    if word is None:
        return
    late = [replace(timeless(one), session_id=f"late-{one.session_id}") for one in others]
    late = [replace(one, said_at=min(one.said_at, word.said_at - timedelta(seconds=1))) for one in late]

    after = fold([*told, *late], (), commands)

    assert [fact.norm for fact in after.active() if fact.mode is Mode.HOLDS] == [held[0].norm]


def timeless(one: Assertion) -> Assertion:
    """Make a statement that neither expires nor is an addition."""
    return replace(one, expires_at=None, amends=None if one.amends == Also() else one.amends)


@given(
    statements(slots=(CITY,), values=("a", "b", "c"), stances=(Stance.HOLDS,), confidences=(0.9,), plain=True)
)
def test_a_single_value_is_the_run_lengths_of_what_was_said(told: Told) -> None:
    told = [replace(one, expires_at=None) for one in told]
    runs = [
        (norm, [*run]) for norm, run in groupby(sorted(told, key=lambda one: one.order), lambda one: one.norm)
    ]
    ends = [*(run[0].said_at for _, run in runs[1:]), *[None][: len(runs)]]
    expected = {(norm, run[0].said_at, end) for (norm, run), end in zip(runs, ends, strict=True)}

    facts = fold(told).facts.values()

    assert {(fact.norm, span.start, span.end) for fact in facts for span in fact.intervals} == expected
    assert [fact.norm for fact in facts if fact.status is Status.ACTIVE] == [norm for norm, _ in runs[-1:]]


@given(statements(slots=(LIKES,), values=("a", "b", "*"), stances=(Stance.HOLDS, Stance.DENIES), plain=True))
def test_a_set_has_the_sign_of_the_last_word_on_each_value(told: Told) -> None:
    told = [one for one in told if one.confidence > 0.6 and (one.norm != "*" or one.stance is Stance.DENIES)]
    signs: dict[str, Stance] = {}
    for one in sorted(told, key=lambda one: one.order):
        if one.norm == "*":
            signs.clear()
        elif one.stance is Stance.HOLDS:
            signs.pop("*", None)
        signs[one.norm] = one.stance

    active = fold(told).active()

    assert {(fact.norm, fact.mode.value) for fact in active} == {
        (norm, sign.value) for norm, sign in signs.items()
    }


PRESENT = statements((CITY, LIKES), ("a", "b"), (Stance.HOLDS, Stance.DENIES), (0.9,))
DATED = statements((CITY, LIKES), ("a", "b"), (Stance.HOLDS, Stance.HELD, Stance.DENIES), (0.9,))


def begun(one: Assertion) -> Assertion:
    """Let a stated start be a start gone by, so that it is no plan."""
    since = one.valid_from if one.valid_from is None or one.valid_from <= one.said_at else None
    return replace(one, valid_from=since, expires_at=None)


@given(PRESENT, OPINIONS)
def test_what_was_said_to_hold_lies_in_an_interval_of_its_fact(told: Told, opinions: list[Opinion]) -> None:
    told = [replace(begun(one), valid_to=None) for one in told if not isinstance(one.amends, Corrects)]
    by_id = {one.assertion_id: one for one in told}
    for fact in fold(told, opinions).facts.values():
        for one in (by_id[name] for name in fact.evidence):
            assert any(
                (span.start is None or span.start <= one.said_at)
                and (span.end is None or one.said_at <= span.end)
                for span in fact.intervals
            )


@given(DATED, OPINIONS, COMMANDS)
def test_the_intervals_of_a_fact_do_not_overlap(told: Told, opinions: list[Opinion], commands: Taken) -> None:
    for fact in fold(map(begun, told), opinions, commands).facts.values():
        for one, following in pairwise(fact.intervals):
            assert one.end is not None
            assert following.start is not None
            assert one.end <= following.start


@given(PRESENT)
def test_the_values_of_a_single_value_slot_do_not_overlap(told: Told) -> None:
    plain = (replace(begun(one), amends=None, valid_to=None, slot=CITY) for one in told)
    told = [one for one in plain if one.effect is Stance.HOLDS]
    spans = sorted(
        ((span.start, span.end) for fact in fold(told).facts.values() for span in fact.intervals),
        key=lambda span: (span[0] or EPOCH, span[1] is None, span[1] or EPOCH),
    )

    assert all(
        end is not None and start is not None and end <= start for (_, end), (start, _) in pairwise(spans)
    )
