"""The rules of one language: words, value ends, moods and patterns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from domain.memory.assertions import Stance
from domain.rules.fragments import Fragments
from domain.rules.patterns import PatternCompiler


class Phrases:
    """The patterns of a rule, compiled when the first clause asks for them."""

    __slots__ = ("_compiled", "_compiler", "texts")

    def __init__(self, texts: Sequence[str], compiler: PatternCompiler) -> None:
        self.texts = tuple(texts)
        self._compiler = compiler
        self._compiled: list[re.Pattern[str] | None] = [None] * len(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> re.Pattern[str]:
        found = self._compiled[index]
        if found is None:
            found = self._compiled[index] = self._compiler.compile(self.texts[index])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is said of which slot, and how; ``about`` when it is said of somebody in the user's life."""

    name: str
    slot: str
    qualifier: str
    about: bool
    stance: Stance | None
    phrases: Phrases
    kind: str
    value: str | None
    wrap: str
    many: bool
    confidence: float
    allow: frozenset[str]
    content: str | None
    beside: bool
    needs: frozenset[str] | None
    begins: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question of the assistant and the slot that a short answer to it fills.

    With ``say`` the answer is read as the statement that begins with those words.
    """

    question: re.Pattern[str]
    slot: str
    kind: str
    many: bool
    say: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTarget:
    """A slot and the words by which a user asks to forget it."""

    slot: str
    qualifier: str
    words: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rulebook:
    """All that one rule file says."""

    language: str
    spaced: bool
    anchor: re.Pattern[str]
    clause: Mapping[str, re.Pattern[str]]
    modality: Mapping[str, re.Pattern[str]]
    value: Mapping[str, re.Pattern[str]]
    lexicon: Mapping[str, frozenset[str]]
    relations: Mapping[str, str]
    animals: Mapping[str, str]
    evidence: Sequence[tuple[re.Pattern[str], float]]
    rules: Sequence[Rule]
    asks: Sequence[Ask]
    dialogue: Mapping[str, re.Pattern[str]]
    time: Mapping[str, object]
    forget: Sequence[ForgetTarget]
    contents: Mapping[str, str] = field(default_factory=dict)
    rewrites: Sequence[tuple[re.Pattern[str], str]] = ()
    spellings: Sequence[tuple[re.Pattern[str], str]] = ()
    prefaces: Sequence[tuple[re.Pattern[str], str]] = ()
    fragments: Fragments = field(default_factory=lambda: Fragments({}, {}))
    profile: Mapping[str, str] = field(default_factory=dict)
    pronouns: Mapping[str, frozenset[str]] = field(default_factory=dict)
