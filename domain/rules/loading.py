"""Reads rule files. A file is read when a text in its language first comes along."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from domain.memory.stances import Stance
from domain.memory.vocabulary import SlotType, Vocabulary
from domain.rules.fragments import Fragments
from domain.rules.own_rules import PACKAGE_RULES, OwnRules, Table, full_name
from domain.rules.patterns import PatternCompiler, first_words, needed_words
from domain.rules.rulebook import Ask, ForgetTarget, Phrases, Rule, Rulebook

LANGUAGES: Final = ("en", "de", "fr", "es", "zh", "ja")

_PACKAGE: Final = "domain.rules"
_NAME: Final = re.compile(r'^name = "([^"]+)"', re.MULTILINE)
_FUNCTION_WORDS: Final = re.compile(r'^function_words = "([^"]*)"', re.MULTILINE)


def rule_text(language: str) -> str:
    """Return the rule file of ``language``."""
    return (files(_PACKAGE) / f"rules_{language}.toml").read_text(encoding="utf-8")


def function_words(language: str) -> frozenset[str]:
    """Return the small words of ``language`` without reading the rest of its file as rules."""
    found = _FUNCTION_WORDS.search(rule_text(language))
    return frozenset(found[1].split()) if found else frozenset()


def rule_names(language: str) -> tuple[str, ...]:
    """Return the names of the rules of ``language``, each with it: "en/home_city-1"."""
    return tuple(full_name(language, name) for name in _NAME.findall(rule_text(language)))


def load_rulebook(text: str, vocabulary: Vocabulary, rules: OwnRules = PACKAGE_RULES) -> Rulebook:
    """Read a rule file whose slots are those of ``vocabulary``, with the operator's own ``rules``.

    Raises:
        KeyError: a rule is about a slot that the vocabulary does not have, or uses a macro that is not there.
        re.error: a pattern is no regular expression.
    """
    raw: Table = tomllib.loads(text)
    return _Loader(raw, vocabulary, rules).book()


class _Loader:
    """One rule file while it is read."""

    def __init__(self, raw: Table, vocabulary: Vocabulary, rules: OwnRules) -> None:
        self._raw = raw
        self._own = rules
        self._vocabulary = vocabulary
        self._relations = _by_word(_table(raw, "relations"))
        self._animals = _by_word(_table(raw, "animals"))
        words = {name: str(text) for name, text in _table(raw, "words").items()}
        words["relation"] = f"(?P<relation>{_alternation(self._relations)})"
        words["animal"] = f"(?P<animal>{_alternation(self._animals)})"
        self._compiler = PatternCompiler(words, spaced=raw.get("spaced", True) is not False)
        self._heads = {name: str(text) for name, text in _table(raw, "heads").items()}

    def book(self) -> Rulebook:
        """Build the rulebook."""
        return Rulebook(
            language=str(self._raw["language"]),
            spaced=self._compiler.spaced,
            anchor=self._compiler.compile_plain(str(self._raw["anchor"])),
            clause=self._compiled("clause"),
            modality=self._compiled("modality"),
            value=self._compiled("value"),
            lexicon={name: _word_set(text) for name, text in _table(self._raw, "lexicon").items()},
            relations=self._relations,
            animals=self._animals,
            evidence=[
                (self._compiler.compile_plain(str(entry["words"])), _number(entry, "weight", 0.0))
                for entry in _tables(self._raw, "evidence")
            ],
            rules=self._rules(),
            asks=[self._ask(entry) for entry in _tables(self._raw, "asks")],
            dialogue=self._compiled("dialogue"),
            time=_table(self._raw, "time"),
            forget=[_forget_target(name, words) for name, words in _table(self._raw, "forget").items()],
            contents={name: str(text) for name, text in _table(self._raw, "contents").items()},
            rewrites=self._replacements("rewrites"),
            spellings=self._replacements("spellings"),
            prefaces=self._replacements("prefaces"),
            fragments=self._fragments(),
            profile=_by_word(_table(self._raw, "profile")),
            pronouns={name: _word_set(text) for name, text in _table(self._raw, "pronouns").items()},
        )

    def _replacements(self, section: str) -> list[tuple[re.Pattern[str], str]]:
        return [
            (self._compiler.compile_plain(str(entry["from"])), str(entry["to"]))
            for entry in _tables(self._raw, section)
        ]

    def _fragments(self) -> Fragments:
        completions = {name: str(text) for name, text in _table(self._raw, "completions").items()}
        return Fragments(self._compiled("fragments"), completions)

    def _compiled(self, section: str) -> dict[str, re.Pattern[str]]:
        return {
            name: self._compiler.compile_plain(str(text)) for name, text in _table(self._raw, section).items()
        }

    def _rules(self) -> list[Rule]:
        """Return the rules that are on; the operator's own come first, for the first that fits is taken."""
        language = str(self._raw["language"])
        entries = [*self._own.of(language), *_tables(self._raw, "rules")]
        named = [(full_name(language, str(entry["name"])), entry) for entry in entries]
        return [self._rule(entry, name) for name, entry in named if name not in self._own.off]

    def _rule(self, entry: Table, name: str) -> Rule:
        kind = self._slot(entry)
        said = _texts(entry, "say")
        about = entry.get("about", False) is True
        return Rule(
            name=name,
            slot=kind.key,
            qualifier=str(entry.get("qualifier", "")),
            about=about,
            stance=Stance(str(entry["stance"])) if "stance" in entry else None,
            phrases=Phrases(said, self._compiler),
            kind=str(entry.get("kind", kind.value_kind)),
            value=_optional(entry, "value"),
            wrap=str(entry.get("wrap", "{value}")),
            many=entry.get("many", False) is True,
            confidence=_number(entry, "confidence", 0.8),
            allow=frozenset(_texts(entry, "allow")),
            content=_optional(entry, "content"),
            beside=entry.get("beside", about or kind.key == "pet_name") is True,
            needs=needed_words(said) if self._compiler.spaced else None,
            begins=first_words(said, self._heads),
        )

    def _ask(self, entry: Table) -> Ask:
        kind = self._slot(entry)
        return Ask(
            question=self._compiler.compile_plain(str(entry["question"])),
            slot=kind.key,
            kind=str(entry.get("kind", kind.value_kind)),
            many=entry.get("many", False) is True,
            say=str(entry.get("say", "")),
        )

    def _slot(self, entry: Table) -> SlotType:
        """Return the slot of ``entry``, which may be named by an alias."""
        name = str(entry["slot"])
        return self._vocabulary.patterns.get(name) or self._vocabulary.by_name[name]


def _forget_target(name: str, words: object) -> ForgetTarget:
    slot, _, qualifier = name.partition(".")
    options = "|".join(str(word) for word in words) if isinstance(words, list) else ""
    pattern = re.compile(rf"(?<!\w)(?:{options or '(?!)'})(?!\w)", re.IGNORECASE)
    return ForgetTarget(slot=slot, qualifier=qualifier, words=pattern)


def _table(raw: Table, name: str) -> Table:
    found = raw.get(name, {})
    return found if isinstance(found, dict) else {}


def _tables(raw: Table, name: str) -> Sequence[Table]:
    found = raw.get(name, [])
    return found if isinstance(found, list) else []


def _texts(entry: Table, name: str) -> list[str]:
    found = entry.get(name, [])
    return [str(one) for one in found] if isinstance(found, list) else []


def _optional(entry: Table, name: str) -> str | None:
    return str(entry[name]) if name in entry else None


def _number(entry: Table, name: str, default: float) -> float:
    found = entry.get(name, default)
    return float(found) if isinstance(found, int | float) else default


def _word_set(text: object) -> frozenset[str]:
    joined = " ".join(str(part) for part in text) if isinstance(text, list) else str(text)
    return frozenset(joined.split("|"))


def _by_word(groups: Table) -> dict[str, str]:
    return {word: name for name, words in groups.items() for word in str(words).split("|")}


def _alternation(words: Mapping[str, str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) or r"(?!)"
