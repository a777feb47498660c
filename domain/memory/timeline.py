"""The story of one component, told once in event order: which line runs when, and what ended it.

The statements are sorted before they are read, so arrival cannot matter. A confident statement settles its
slot: what was said before it no longer decides what holds after it, which is why an old conversation that
comes late can add history and nothing else.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.memory.assertions import (
    Also,
    Assertion,
    Claim,
    Compatible,
    InsteadOf,
    Merge,
    Mode,
    OrderKey,
    Rivals,
    Stance,
)
from domain.memory.gists import Gist
from domain.memory.relations import LineKey, Relations
from domain.memory.slots import Slot
from domain.memory.spells import Cause, Line, Spell, latest
from domain.memory.values import EVERYTHING, normalise, skeleton
from domain.memory.vocabulary import Arity

Cutoff = Callable[[LineKey], OrderKey | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings of the fold; without a ``gist`` values are one only when they are the same text."""

    keep: float = 0.65
    hold: float = 0.45
    promote_sessions: int = 2
    dispute_window: timedelta = timedelta(hours=24)
    plan_grace: timedelta = timedelta(days=30)
    gist: Gist | None = None


class Timeline:
    """The lines of one component, while its statements are read in order."""

    def __init__(self, relations: Relations, cutoff: Cutoff, rules: Rules) -> None:
        self._relations = relations
        self._cutoff = cutoff
        self._rules = rules
        self._all: dict[LineKey, Line] = {}
        self._alive: dict[tuple[Slot, str], dict[LineKey, Line]] = defaultdict(dict)
        self._beside: set[frozenset[LineKey]] = set()
        self._arity: dict[Slot, Arity] = {}

    @property
    def lines(self) -> Sequence[Line]:
        """Every line that was spoken of."""
        return tuple(self._all.values())

    def tell(self, statements: Sequence[Assertion]) -> None:
        """Read ``statements``, which must be in event order."""
        for statement in statements:
            line = self._line(self._relations.key(statement.claim))
            line.close_hidden(statement)
            if not self._counts(line, statement):
                continue
            if statement.effect is Stance.HELD:
                self._past(line, statement)
            else:
                self._settle(line, statement)
        for line in self.lines:
            line.close_hidden(None)

    def _line(self, key: LineKey) -> Line:
        return self._all.get(key) or self._all.setdefault(key, Line(key, self._cutoff(key)))

    def _enliven(self, line: Line) -> None:
        for shelf in _shelves(line.key):
            self._alive[shelf][line.key] = line

    def _living(self, shelf: tuple[Slot, str]) -> list[Line]:
        """Return the lines of ``shelf`` that run or wait; drop the others until they are spoken of again."""
        alive = {key: line for key, line in self._alive.get(shelf, {}).items() if line.spell or line.waiting}
        self._alive[shelf] = alive
        return list(alive.values())

    def _arity_of(self, key: LineKey) -> Arity:
        if key.family not in self._arity:
            self._arity[key.family] = self._relations.arity(key.family)
        return self._arity[key.family]

    def _counts(self, line: Line, statement: Assertion) -> bool:
        """Say whether ``statement`` changes anything; a weak one waits for a second session."""
        if statement.confidence >= self._rules.keep:
            return True
        if line.spell is not None and statement.effect is not Stance.HELD:
            line.spell.add(statement)
            return False
        line.weak.append(statement)
        line.waiting.append(statement)
        self._enliven(line)
        alike = [
            one.session_id
            for one in line.waiting
            if one.effect is statement.effect and line.hides(one) == line.hides(statement)
        ]
        if len(set(alike)) < self._rules.promote_sessions:
            return False
        line.weak.remove(statement)
        return True

    def _settle(self, line: Line, statement: Assertion) -> None:
        ended = list(self._ended_by(line, statement))
        opened = line.spell is None
        spell = line.spell or self._open(line, statement, [other for other, _ in ended])
        if spell.last is not None and spell.last.session_id != statement.session_id:
            spell.disputes = None
        spell.confirm(statement)
        line.waiting.clear()
        for other, cause in ended:
            if other.spell is not None:
                other.spell.close(cause, line, statement.said_at, spell if opened else None)
        self._close_redundant(line, spell, statement)

    def _open(self, line: Line, statement: Assertion, ended: Sequence[Line]) -> Spell:
        floor = latest(*(spell.end for spell in line.spells))
        for other in ended:
            floor = latest(floor, other.spell.last_at if other.spell else None)
        start = statement.said_at
        if statement.valid_from is not None and statement.effect is not Stance.PLANS:
            start = min(statement.valid_from, start)
        spell = Spell(
            max(start, floor) if floor else start,
            floor,
            short=statement.expires_at is not None and _is_held(line),
        )
        spell.disputes = next((other for other in ended if self._disputed(line, statement, other)), None)
        line.spells.append(spell)
        self._enliven(line)
        return spell

    def _close_redundant(self, line: Line, spell: Spell, statement: Assertion) -> None:
        """A denial tells nothing where another value is known to hold, and only one can."""
        if line.key.mode is not Mode.DENIES or self._arity_of(line.key) is not Arity.ONE:
            return
        for other in self._living((line.key.family, "")):
            if other.key.mode is Mode.HOLDS and other.spell is not None and self._visible(other, statement):
                spell.close(Cause.SUBSUMED, other, statement.said_at)
                return

    def _visible(self, line: Line, at: Assertion) -> bool:
        line.close_hidden(at)
        return line.spell is not None

    def _past(self, line: Line, statement: Assertion) -> None:
        until = statement.valid_to if statement.valid_to and statement.valid_to <= statement.said_at else None
        line.waiting.clear()
        told = next((spell for spell in reversed(line.spells) if _same_time(line, spell, statement)), None)
        if told is None:
            _insert(line, Spell(statement.valid_from, evidence=[statement]), until or statement.said_at)
        elif told.running:
            told.add(statement)
            told.close(Cause.ENDED, None, until or statement.said_at)
        else:
            told.evidence.append(statement)

    def _ended_by(self, line: Line, statement: Assertion) -> Iterator[tuple[Line, Cause]]:
        """Yield the running lines that ``statement`` ends, and let what waited against it start anew."""
        also = isinstance(statement.amends, Also)
        for other in self._near(line, statement):
            cause = self._cause(line, other, statement)
            if cause is None:
                continue
            if also and cause is Cause.CHANGE:
                self._beside |= (
                    {frozenset((line.key, other.key))} if self._visible(other, statement) else set()
                )
                continue
            other.waiting.clear()
            if not self._visible(other, statement) or other.spell is None:
                continue
            short = statement.expires_at is not None and _is_held(line)
            if cause is Cause.CHANGE and line.spell is None and short != other.spell.short:
                continue
            yield other, cause

    def _near(self, line: Line, statement: Assertion) -> list[Line]:
        """Return the lines that ``line`` might end, without walking over every value of a large slot."""
        key = line.key
        if self._arity_of(key) in (Arity.ONE, Arity.EVENT) or key.subject == EVERYTHING:
            near = self._living((key.family, ""))
        else:
            subjects = {key.subject, EVERYTHING} | self._instead(line, statement)
            keys = [LineKey(key.family, subject, mode) for subject in sorted(subjects) for mode in Mode]
            near = self._known([*keys, *self._relations.judged(key)])
            if self._arity_of(key) is Arity.FREE and (shape := skeleton(key.subject)):
                near += self._living((key.family, shape))
        near += self._known(self._relations.across.get(key, ()))
        return [other for other in dict.fromkeys(near) if other is not line]

    def _known(self, keys: Iterable[LineKey]) -> list[Line]:
        return [self._all[key] for key in keys if key in self._all]

    def _instead(self, line: Line, statement: Assertion) -> set[str]:
        if not isinstance(statement.amends, InsteadOf):
            return set()
        norm = normalise(statement.amends.value)
        return {self._relations.key(Claim(statement.slot, norm)).subject} - {line.key.subject}

    def _cause(self, line: Line, other: Line, statement: Assertion) -> Cause | None:
        key, its = line.key, other.key
        if key.family != its.family:
            return Cause.CONTRADICTION if its in self._relations.across.get(key, {}) else None
        if key.subject == its.subject:
            return _within_subject(key.mode, its.mode)
        if EVERYTHING in (key.subject, its.subject):
            return _against_everything(key, its)
        if its.subject in self._instead(line, statement) and key.mode is its.mode:
            return Cause.CHANGE
        return self._between(key, its)

    def _between(self, key: LineKey, its: LineKey) -> Cause | None:
        arity = self._arity_of(key)
        if arity is Arity.EVENT:
            return _against_occurrence(key, its)
        if key.mode is Mode.HOLDS and its.mode is Mode.DENIES and arity is Arity.ONE:
            return Cause.SUBSUMED
        if key.mode is not its.mode or key.mode is Mode.DENIES:
            return None
        return Cause.CHANGE if self._excludes(key, its, arity) else None

    def _excludes(self, key: LineKey, its: LineKey, arity: Arity) -> bool:
        """Say whether two values that are both held, or both planned, cannot be so at once."""
        match self._relations.verdict(key, its):
            case Rivals():
                return True
            case Compatible() | Merge():
                return False
            case _:
                pass
        if frozenset((key, its)) in self._beside:
            return False
        shape = skeleton(key.subject)
        recounted = arity is Arity.FREE and shape is not None and shape == skeleton(its.subject)
        return arity is Arity.ONE or recounted

    def _disputed(self, line: Line, statement: Assertion, other: Line) -> bool:
        """Say whether a person should decide: two confident values close in time, no change stated."""
        before = other.spell.last if other.spell else None
        one_value = self._arity_of(line.key) is Arity.ONE and line.key.mode is Mode.HOLDS is other.key.mode
        if before is None or not one_value or line.key.family != other.key.family:
            return False
        stated = statement.amends is not None or "manual" in (statement.method, before.method)
        sure = min(statement.confidence, before.confidence) >= self._rules.keep
        if stated or not sure or before.session_id == statement.session_id:
            return False
        soon = statement.said_at - before.said_at < self._rules.dispute_window
        return soon or self._relations.asks(line.key.family)


def _shelves(key: LineKey) -> list[tuple[Slot, str]]:
    shape = skeleton(key.subject)
    return [(key.family, ""), (key.family, shape)] if shape else [(key.family, "")]


def _is_held(line: Line) -> bool:
    return line.key.mode is Mode.HOLDS


def _within_subject(mode: Mode, its: Mode) -> Cause | None:
    match mode, its:
        case (Mode.HOLDS, Mode.DENIES) | (Mode.DENIES, Mode.HOLDS):
            return Cause.DENIAL
        case (Mode.HOLDS, Mode.PLANS):
            return Cause.FULFILLED
        case (Mode.DENIES, Mode.PLANS):
            return Cause.DENIAL
        case _:
            return None


def _against_everything(key: LineKey, its: LineKey) -> Cause | None:
    """``no pets`` ends every pet, and any pet ends ``no pets``."""
    if key.mode is Mode.DENIES and key.subject == EVERYTHING:
        return Cause.DENIAL if its.mode is Mode.HOLDS else Cause.SUBSUMED if its.mode is Mode.DENIES else None
    return Cause.DENIAL if key.mode is Mode.HOLDS and its.mode is Mode.DENIES else None


def _against_occurrence(key: LineKey, its: LineKey) -> Cause | None:
    """A denial without a day ends each dated occurrence."""
    is_denied = key.mode is Mode.DENIES and its.subject.startswith(f"{key.subject} @ ")
    return Cause.DENIAL if is_denied else None


def _insert(line: Line, past: Spell, end: datetime) -> None:
    """Add a period that was only told of afterwards, before the one that runs."""
    past.close(Cause.ENDED, None, end)
    running = line.spell
    line.spells.insert(len(line.spells) - (running is not None), past)
    if running is not None:
        running.floor = latest(running.floor, end)


def _same_time(line: Line, spell: Spell, statement: Assertion) -> bool:
    """Say whether a past statement can be about ``spell``."""
    if all(map(line.hides, spell.evidence)) != line.hides(statement):
        return False
    after = statement.valid_from and spell.end and statement.valid_from > spell.end
    apart = statement.valid_from is not None or not spell.running
    before = apart and statement.valid_to and spell.start and statement.valid_to < spell.start
    return not after and not before
