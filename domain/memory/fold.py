"""The memory of a scope as a pure fold over its assertions.

``fold(assertions, judgements, retractions)`` gives the facts, the pending candidates and the open questions
of one scope. It knows no clock, no database and no model. The result is a function of the *sets* it is given:
arrival order, repetition and the split over workers cannot be seen in it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar
from uuid import UUID

from domain.memory.assertions import Assertion, Judgement, OrderKey, Retraction, SlotLink
from domain.memory.projection import Projection, State
from domain.memory.relations import relate
from domain.memory.slots import EVERYWHERE, Slot
from domain.memory.timeline import Rules, Timeline
from domain.memory.withdrawals import Withdrawals, taken_back

Opinion = Judgement | SlotLink
Value = TypeVar("Value")

DEFAULT: Final = Rules()


class ConflictingEvidenceError(ValueError):
    """One id was given to two different assertions."""


def fold(
    assertions: Iterable[Assertion],
    judgements: Iterable[Opinion] = (),
    retractions: Iterable[Retraction] = (),
    rules: Rules = DEFAULT,
) -> State:
    """Return the memory that follows from everything that was said, judged and taken back.

    A part of the slots may be folded alone, as ``affected`` names them: what was said of ``EVERYWHERE``
    belongs to every part.
    """
    statements = distinct(assertions)
    opinions, commands = frozenset(judgements), frozenset(retractions)
    sweeps = frozenset(one.order for one in statements if one.slot == EVERYWHERE)
    by_slot: dict[Slot, list[Assertion]] = defaultdict(list)
    for statement in statements:
        by_slot[statement.slot].append(statement)
    parts = [
        _fold_component(
            sorted(chain.from_iterable(by_slot[s] for s in slots), key=_order),
            opinions,
            commands,
            sweeps=sweeps,
            rules=rules,
        )
        for slots in components(by_slot, opinions)
    ]
    return join(parts)


def served(assertions: Iterable[Assertion], serving: Mapping[str, str]) -> list[Assertion]:
    """Keep the rows of the generation that serves each session; a shadow replay is another ``serving``."""
    return [one for one in assertions if serving.get(one.session_id, one.generation) == one.generation]


def refold(before: State, slots: Iterable[Slot], part: State) -> State:
    """Put ``part``, the fold of the statements of ``slots``, in the place of what ``before`` knew of them."""
    return join([_without(before, frozenset(slots)), part])


def affected(
    touched: Iterable[Slot], *catalogues: tuple[Iterable[Slot], Iterable[Opinion]]
) -> frozenset[Slot]:
    """Return the slots to fold anew when ``touched`` changed; a catalogue is one moment's slots and opinions.

    Give the catalogues from before and from after the change: an opinion that goes splits a component.
    ``EVERYWHERE`` is always one of them, and where it was touched itself they are all.
    """
    wanted = frozenset(touched)
    found = {EVERYWHERE, *wanted}
    for slots, opinions in catalogues:
        for component in components(slots, frozenset(opinions)):
            if component & wanted or EVERYWHERE in wanted:
                found |= component
    return frozenset(found)


def components(slots: Iterable[Slot], opinions: Iterable[Opinion]) -> Sequence[frozenset[Slot]]:
    """Split ``slots`` into the parts that cannot influence one another."""
    members = {slot: {slot} for slot in slots}
    for opinion in opinions:
        left, right = (
            (opinion.left, opinion.right)
            if isinstance(opinion, SlotLink)
            else (opinion.left.slot, opinion.right.slot)
        )
        if left in members and right in members and members[left] is not members[right]:
            members[left] |= members[right]
            for slot in members[right]:
                members[slot] = members[left]
    return sorted({id(found): frozenset(found) for found in members.values()}.values(), key=min)


def distinct(assertions: Iterable[Assertion]) -> Sequence[Assertion]:
    """Drop repeated rows; refuse one id with two contents, and more than one scope."""
    by_id: dict[UUID, Assertion] = {}
    for one in assertions:
        known = by_id.setdefault(one.assertion_id, one)
        if known != one:
            raise ConflictingEvidenceError(f"assertion {one.assertion_id} has two contents")
    if len({one.scope for one in by_id.values()}) > 1:
        raise ConflictingEvidenceError("a fold is about one scope")
    return list(by_id.values())


def join(parts: Iterable[State]) -> State:
    """Put states of separate components together."""
    states = list(parts)
    return State(
        facts=_union(state.facts for state in states),
        pending=_union(state.pending for state in states),
        clarifications=frozenset().union(*(state.clarifications for state in states)),
        contradictions=frozenset().union(*(state.contradictions for state in states)),
        unused=_union(state.unused for state in states),
        slot_of=_union(state.slot_of for state in states),
    )


def _union(mappings: Iterable[Mapping[UUID, Value]]) -> Mapping[UUID, Value]:
    return {key: value for mapping in mappings for key, value in mapping.items()}


def _without(state: State, slots: frozenset[Slot]) -> State:
    facts = {key: fact for key, fact in state.facts.items() if fact.slot not in slots}
    return State(
        facts=facts,
        pending={key: one for key, one in state.pending.items() if one.slot not in slots},
        clarifications=frozenset(one for one in state.clarifications if one.slot not in slots),
        contradictions=frozenset(one for one in state.contradictions if one.older in facts),
        unused={key: why for key, why in state.unused.items() if state.slot_of[key] not in slots},
        slot_of={key: slot for key, slot in state.slot_of.items() if slot not in slots},
    )


def _order(statement: Assertion) -> OrderKey:
    return statement.order


def _fold_component(
    statements: Sequence[Assertion],
    opinions: frozenset[Opinion],
    commands: frozenset[Retraction],
    *,
    sweeps: frozenset[OrderKey],
    rules: Rules,
) -> State:
    slots = {statement.slot for statement in statements}
    relations = relate(
        statements,
        [o for o in opinions if isinstance(o, Judgement) and {o.left.slot, o.right.slot} <= slots],
        [o for o in opinions if isinstance(o, SlotLink) and {o.left, o.right} <= slots],
        rules.gist,
    )
    withdrawals = Withdrawals(relations, commands, statements, sweeps)
    gone = taken_back(statements, relations, withdrawals, keep=rules.keep)
    timeline = Timeline(relations, withdrawals.cutoff, rules)
    timeline.tell([statement for statement in statements if statement not in gone])
    return Projection(statements[0].scope, relations, timeline.lines, rules).state(gone)
