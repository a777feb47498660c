"""What one statement says: the rules that fit its clauses, and the candidates that they make."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Final
from zoneinfo import ZoneInfo

from domain.candidates import Candidate, Method
from domain.conversation import Message
from domain.memory.slots import SELF, about_of
from domain.memory.stances import Stance
from domain.memory.values import normalise
from domain.memory.vocabulary import Arity, SlotType, Vocabulary
from domain.rules.clauses import EXCERPT_CHARS, Clause, Sentence, clauses
from domain.rules.eventtime import EventClock
from domain.rules.persons import Persons
from domain.rules.profiles import Particular
from domain.rules.rulebook import Rule, Rulebook
from domain.rules.sentences import Words, sentence_of
from domain.rules.values import ValueReader
from domain.secrets import MARK

# Positions of one message's candidates; the message's own position decides first.
POSITIONS_PER_MESSAGE: Final = 1000

_WORDS: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NOT_KEY: Final = re.compile(r"[^a-z0-9]+")
_BLOCKING: Final = frozenset(
    {"question", "hypothetical", "reported", "instruction", "fiction", "possible", "wish", "generic"}
)
_SCOPED: Final = frozenset({"preference", "food"})
# Only in these slots does a day to come make a statement one about the future.
_STARTS_LATER: Final = frozenset({"home_city", "employer", "job_title", "school", "marital_status"})
_OF_THE_RELATION: Final = frozenset({"name", "relative"})
_ABOUT_SOMEBODY: Final = "relationship"
# What a head announces need not be known by itself.
_SAID_KINDS: Final = {"job": "job_said"}
_MAX_TOPIC: Final = 30
_REASON_CHARS: Final = 160
_MAX_SAID: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where words come from; ``cased`` when its capitals can be trusted, ``speaker`` in a bridged chat."""

    message: Message
    cased: bool
    timezone: ZoneInfo | None = None
    speaker: str | None = None
    also: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The messages that are cited."""
        return (*self.also, self.message.message_id)

    @property
    def local_time(self) -> datetime:
        """The time of the message where the user is."""
        sent = self.message.sent_at
        is_utc = not sent.utcoffset()
        return sent.astimezone(self.timezone) if self.timezone is not None and is_utc else sent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    rule: Rule
    pattern: str
    match: re.Match[str]
    values: tuple[str, ...]
    clause: Clause
    rest: str


class StatementReader:
    """Reads statements in one language."""

    def __init__(self, book: Rulebook, vocabulary: Vocabulary) -> None:
        self.book = book
        self._vocabulary = vocabulary
        self._clock = EventClock(book.time)
        self._values = {cased: ValueReader(book, cased=cased) for cased in (False, True)}

    def read(
        self, text: str, source: Source, *, is_question: bool = False, persons: Persons | None = None
    ) -> list[Candidate]:
        """Return what ``text``, a sentence, states; ``persons`` are those that its turn has named."""
        if self.book.modality["_injection"].search(text):
            return []
        return [
            self._candidate(hit, value, source)
            for clause in clauses(Sentence(text=text, is_question=is_question), self.book, persons)
            if self.book.anchor.search(clause.text)
            for hit in self._hits(clause, source)
            for value in hit.values
            if MARK not in value
        ]

    def persons(self) -> Persons:
        """Return the persons of a turn that has not begun."""
        return Persons(self.book.pronouns, self.book.relations, self.book.animals)

    def values(self, text: str, kind: str, *, cased: bool, many: bool) -> list[str]:
        """Read typed values at the head of ``text``."""
        return self._values[cased].read(text, kind, many=many)

    def assign(self, key: str, value: str, excerpt: str, source: Source, *, topic: str = "") -> Candidate:
        """Return the candidate that ``value`` in the slot ``key`` is, as an answer to a question says it."""
        kind = self._vocabulary.slots.get(key) or self._vocabulary.patterns[key]
        return Candidate(
            category=kind.category,
            key=key.replace("{topic}", _slug(topic) or "thing")[:64],
            value=value,
            content=sentence_of(kind, Stance.HOLDS, Words(value=value, topic=topic), self.book.contents),
            confidence=0.78,
            importance=kind.importance,
            said_at=source.message.sent_at,
            message_ids=source.ids,
            excerpt=excerpt[:EXCERPT_CHARS],
            method=Method.RULES,
            reasoning=f"a short answer to a question about {key}",
        )

    def profile(self, lines: Sequence[Particular], source: Source) -> list[Candidate]:
        """Return what a list of particulars says."""
        out: list[Candidate] = []
        for line in lines:
            key = self.book.profile.get(normalise(line.key))
            if key is None:
                continue
            kind = self._vocabulary.slots[key]
            many = kind.arity is Arity.MANY
            said = _SAID_KINDS.get(kind.value_kind, kind.value_kind)
            values = self.values(line.value, said, cased=source.cased, many=many)
            out += [self.assign(key, value, line.said, source) for value in values if MARK not in value]
        return out

    def _hits(self, clause: Clause, source: Source) -> Iterator[_Hit]:
        blocked = clause.moods & _BLOCKING
        listed = _WORDS.findall(clause.text.casefold())
        words, first = frozenset(listed), listed[0] if listed else ""
        taken = False
        for rule in self.book.rules:
            if not _may_fit(rule, words, first) or (taken and not rule.beside) or blocked - rule.allow:
                continue
            hit = self._try(rule, clause, cased=source.cased)
            if hit:
                yield hit
                taken = taken or (self.book.spaced and not rule.beside)

    def _try(self, rule: Rule, clause: Clause, *, cased: bool) -> _Hit | None:
        spaced = self.book.spaced
        for index in range(len(rule.phrases)):
            pattern = rule.phrases[index]
            match = pattern.match(clause.text) if spaced else pattern.search(clause.text)
            if match is None or not self._is_named(match, cased=cased):
                continue
            rest = clause.text[match.end() :]
            values = self._read_values(rule, match, rest, cased=cased)
            if values:
                text = rule.phrases.texts[index]
                return _Hit(rule=rule, pattern=text, match=match, values=values, clause=clause, rest=rest)
        return None

    def _is_named(self, match: re.Match[str], *, cased: bool) -> bool:
        name = match.groupdict().get("name")
        kind = "person_strict" if self.book.spaced else "person"
        return not name or bool(self._values[cased].read(name, kind, many=False))

    def _read_values(self, rule: Rule, match: re.Match[str], rest: str, *, cased: bool) -> tuple[str, ...]:
        groups = {name: text or "" for name, text in match.groupdict().items()}
        if rule.value is not None:
            return (" ".join(rule.value.format(**groups).split()),)
        raw = groups.get("value") or groups.get("number") or rest
        read = self._values[cased].read(raw, rule.kind, many=rule.many)
        return tuple(rule.wrap.format(value=value) for value in read)

    def _candidate(self, hit: _Hit, value: str, source: Source) -> Candidate:
        rule = hit.rule
        groups = hit.match.groupdict()
        kind = self._vocabulary.slots.get(rule.slot) or self._vocabulary.patterns[rule.slot]
        stance = self._stance(hit)
        topic = groups.get("topic") or ""
        shown = _with_scope(value, hit.clause.scope, kind)
        words = self._words(hit, shown, topic, source)
        content = rule.content.format(**words.places()) if rule.content else ""
        content = content or sentence_of(kind, stance, words, self.book.contents)
        if source.speaker:
            content = content.replace("User", source.speaker, 1)
        return Candidate(
            category=_ABOUT_SOMEBODY if rule.about else kind.category,
            key=rule.slot.replace("{topic}", _slug(topic) or "thing")[:64],
            value=shown,
            about=self._about(hit, source),
            qualifier=rule.qualifier,
            stance=stance,
            content=content[:500],
            confidence=self._confidence(hit),
            importance=kind.importance,
            said_at=source.message.sent_at,
            valid_from=self._start(hit, stance, kind, source),
            message_ids=source.ids,
            excerpt=hit.clause.excerpt,
            method=Method.RULES,
            reasoning=_reason(hit),
        )

    def _stance(self, hit: _Hit) -> Stance:
        if hit.rule.stance is not None:
            return hit.rule.stance
        return Stance.HELD if self.book.modality["_ended"].search(hit.rest) else Stance.HOLDS

    def _words(self, hit: _Hit, value: str, topic: str, source: Source) -> Words:
        groups = hit.match.groupdict()
        relation, family = self._relation(hit)
        is_of_somebody = hit.rule.about or hit.rule.slot == "pet_name"
        subject = " ".join(filter(None, (relation, groups.get("name") or ""))) if is_of_somebody else ""
        return Words(
            value=value,
            subject=subject or source.speaker or "user",
            relation=family.replace("_", " "),
            topic=topic,
            qualifier=hit.rule.qualifier,
            said=hit.match.group().strip(),
            about_somebody=hit.rule.about,
        )

    def _relation(self, hit: _Hit) -> tuple[str, str]:
        groups = hit.match.groupdict()
        relation = groups.get("relation") or groups.get("animal") or ""
        folded = normalise(relation)
        return relation, self.book.relations.get(folded, self.book.animals.get(folded, ""))

    def _about(self, hit: _Hit, source: Source) -> str:
        if not hit.rule.about:
            return about_of(source.speaker) if source.speaker else SELF
        _, family = self._relation(hit)
        relation = about_of(family)
        # Where there is one such person, a name would only split what belongs together.
        is_one = not self._vocabulary.relatives.several.get(relation, True)
        name = hit.match.groupdict().get("name") or ""
        return relation if is_one or hit.rule.slot in _OF_THE_RELATION else about_of(family, name)

    def _start(self, hit: _Hit, stance: Stance, kind: SlotType, source: Source) -> datetime | None:
        at = source.local_time
        day = self._clock.resolve(hit.clause.said[:_MAX_SAID], at, ahead=stance is Stance.PLANS)
        if day is None:
            return None
        may_be_later = stance is Stance.PLANS or kind.arity is Arity.EVENT or kind.key in _STARTS_LATER
        if day > at.date() and not may_be_later:
            return None
        return datetime.combine(day, time(), at.tzinfo)

    def _confidence(self, hit: _Hit) -> float:
        weights = (weight for pattern, weight in self.book.evidence if pattern.search(hit.clause.context))
        return round(min(max(hit.rule.confidence + sum(weights), 0.05), 0.98), 2)


def _may_fit(rule: Rule, words: frozenset[str], first: str) -> bool:
    if rule.begins is not None and first not in rule.begins:
        return False
    return rule.needs is None or not rule.needs.isdisjoint(words)


def _with_scope(value: str, scope: str, kind: SlotType) -> str:
    """Keep the scope of a taste in its value: "cider (in summer)"."""
    if not scope or kind.category not in _SCOPED or scope.casefold() in value.casefold():
        return value
    return f"{value} ({scope[0].lower()}{scope[1:]})"


def _slug(text: str) -> str:
    return _NOT_KEY.sub("_", text.casefold()).strip("_")[:_MAX_TOPIC]


def _reason(hit: _Hit) -> str:
    moods = f"; moods: {', '.join(sorted(hit.clause.moods))}" if hit.clause.moods else ""
    return f"rule {hit.rule.name}: {hit.pattern[:_REASON_CHARS]}{moods}"
