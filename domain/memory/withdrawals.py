"""What is taken out of the story: corrections take evidence back, commands hide or disown it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from domain.memory.assertions import (
    Assertion,
    Claim,
    Corrects,
    Mode,
    OrderKey,
    Retraction,
    RetractionKind,
    Stance,
    claim_id,
)
from domain.memory.relations import LineKey, Relations
from domain.memory.slots import Slot
from domain.memory.values import EVERYTHING, normalise
from domain.memory.vocabulary import Arity

_AFTER_ALL = "\U0010ffff"
_LAST = {RetractionKind.RESTORE: "0", RetractionKind.FORGET: "1", RetractionKind.DISOWN: "1"}


class Reason(StrEnum):
    """Why a statement is evidence of no fact."""

    CORRECTED = "corrected"
    DISOWNED = "disowned"
    COMMAND = "command"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class _Command:
    order: OrderKey
    kind: RetractionKind
    subject: str
    mode: Mode | None

    def covers(self, line: LineKey) -> bool:
        if self.subject == EVERYTHING:
            return True
        return self.subject == line.subject and self.mode in (None, line.mode)


class Withdrawals:
    """The commands of one component, asked by line; ``sweeps`` are the times at which all was forgotten."""

    def __init__(
        self,
        relations: Relations,
        commands: Iterable[Retraction],
        statements: Sequence[Assertion],
        sweeps: Iterable[OrderKey] = (),
    ) -> None:
        self._sweeps = [_Command(order, RetractionKind.FORGET, EVERYTHING, None) for order in sweeps]
        self._commands: dict[Slot, list[_Command]] = defaultdict(list)
        lines = _by_id(relations, statements)
        for command in commands:
            order = (command.at, _AFTER_ALL, 0, _LAST[command.kind])
            if isinstance(command.target, Slot):
                family = relations.families.get(command.target, command.target)
                self._commands[family].append(_Command(order, command.kind, EVERYTHING, None))
            elif (line := lines.get(command.target)) is not None:
                self._commands[line.family].append(_Command(order, command.kind, line.subject, line.mode))
        for statement in statements:
            if statement.effect is Stance.FORGETS:
                key = relations.key(statement.claim)
                forgotten = _Command(statement.order, RetractionKind.FORGET, key.subject, None)
                self._commands[key.family].append(forgotten)

    def cutoff(self, line: LineKey, kind: RetractionKind = RetractionKind.FORGET) -> OrderKey | None:
        """Return up to where ``kind`` takes out evidence of ``line``, unless it was restored since."""
        own = self._commands.get(line.family, ())
        about = [*self._sweeps, *(command for command in own if command.covers(line))]
        restored = max((one.order for one in about if one.kind is RetractionKind.RESTORE), default=None)
        taken = [
            one.order for one in about if one.kind is kind and (restored is None or one.order > restored)
        ]
        return max(taken, default=None)


def _by_id(relations: Relations, statements: Sequence[Assertion]) -> Mapping[UUID, LineKey]:
    lines: dict[UUID, LineKey] = {}
    for statement in statements:
        key = relations.key(statement.claim)
        lines[claim_id(statement.scope, statement.claim)] = key
        if statement.known_as is not None:
            lines[statement.known_as] = key
    return lines


def taken_back(
    statements: Sequence[Assertion], relations: Relations, withdrawals: Withdrawals, *, keep: float
) -> Mapping[Assertion, Reason]:
    """Return the statements that do not take part in the story, each with its reason."""
    gone: dict[Assertion, Reason] = {}
    by_family: dict[Slot, list[Assertion]] = defaultdict(list)
    for statement in statements:
        key = relations.key(statement.claim)
        disowned = withdrawals.cutoff(key, RetractionKind.DISOWN)
        if statement.effect is Stance.FORGETS:
            gone[statement] = Reason.COMMAND
            continue
        if disowned is not None and statement.order <= disowned:
            gone[statement] = Reason.DISOWNED
            continue
        earlier = by_family[key.family]
        if isinstance(statement.amends, Corrects) and statement.confidence >= keep:
            for wrong in _wrong(statement, statement.amends, earlier, relations):
                gone[wrong] = Reason.CORRECTED
        earlier.append(statement)
    return gone


def _wrong(
    statement: Assertion, amends: Corrects, earlier: Sequence[Assertion], relations: Relations
) -> list[Assertion]:
    """Find what ``statement`` takes back: its own session's slip, else the latest run of the wrong value."""
    own = relations.key(statement.claim)
    others = [(one, relations.key(one.claim)) for one in earlier]
    target = _target(
        statement, amends, [(one, key) for one, key in others if key.subject != own.subject], relations
    )
    matching = [one for one, key in others if key.subject == target and key != own]
    slips = [one for one in matching if one.session_id == statement.session_id]
    if amends.everywhere:
        return matching
    if slips:
        return slips
    return _latest_run(others, target, own, one_value=relations.arity(own.family) is Arity.ONE)


def _target(
    statement: Assertion, amends: Corrects, others: Sequence[tuple[Assertion, LineKey]], relations: Relations
) -> str | None:
    if amends.value is not None:
        return relations.key(Claim(statement.slot, normalise(amends.value))).subject
    here = [key.subject for one, key in others if one.session_id == statement.session_id]
    before = here or [key.subject for _, key in others]
    return before[-1] if before else None


def _latest_run(
    others: Sequence[tuple[Assertion, LineKey]], target: str | None, own: LineKey, *, one_value: bool
) -> list[Assertion]:
    run: list[Assertion] = []
    for one, key in reversed(others):
        if key.subject == target and key != own:
            run.append(one)
        elif run and one_value:
            break
    return run
