"""Reading an operator's file of rules, with errors that name the entry and its field.

The file holds ``[[rules]]`` like those of the package, each with a ``name`` and a ``language``.
"""

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from domain.errors import InvalidInputError
from domain.memory.stances import Stance
from domain.memory.vocabulary import Vocabulary
from domain.memory.vocabulary_entries import Entry, entries
from domain.rules.kinds import KINDS
from domain.rules.limits import UnboundedPatternError, assure_bounded
from domain.rules.loading import LANGUAGES, load_rulebook, rule_names, rule_text
from domain.rules.own_rules import OwnRules, Table
from domain.rules.rulebook import Rule

_FIELDS: Final = (
    "name", "language", "slot", "say", "kind", "value", "wrap", "many", "stance", "about", "qualifier",
    "confidence", "allow", "content", "beside",
)  # fmt: skip
_MOODS: Final = (
    "question", "hypothetical", "reported", "instruction", "possible", "wish", "generic",
)  # fmt: skip
_PLAIN_KINDS: Final = ("thing", "food", "text")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def read_own_rules(text: str, vocabulary: Vocabulary) -> OwnRules:
    """Read the rules of an operator's file.

    Raises:
        InvalidInputError: with the line, or the entry and its field, that is wrong.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInputError(f"no TOML: {exc}", field="rules") from exc
    Entry("the file", raw).only("rules")
    found: dict[str, list[Table]] = {}
    for entry in entries(raw, "rules"):
        language = _checked(entry, vocabulary)
        found.setdefault(language, []).append(entry.fields)
    own = OwnRules(by_language=found, digest=hashlib.sha256(text.encode()).hexdigest())
    _no_name_twice([*own.names, *_names_of_the_package()])
    _assure_it_compiles(own, vocabulary)
    return own


def assure_known(off: Iterable[str], own_names: Sequence[str] = ()) -> None:
    """Refuse names of rules that are not there.

    Raises:
        InvalidInputError: with the first unknown name.
    """
    unknown = sorted(set(off) - set(own_names) - set(_names_of_the_package()))
    if unknown:
        raise InvalidInputError(f"no rule has the name {unknown[0]!r}", field="rules")


def _names_of_the_package() -> list[str]:
    return [name for language in LANGUAGES for name in rule_names(language)]


def _checked(entry: Entry, vocabulary: Vocabulary) -> str:
    """Check all of ``entry`` that can be checked by itself, and return its language."""
    entry.only(*_FIELDS)
    if not _NAME.fullmatch(entry.text("name")):
        raise entry.wrong("name", "small letters, digits, - and _ are needed")
    slot = entry.text("slot")
    if slot not in vocabulary.patterns and slot not in vocabulary.by_name:
        raise entry.wrong("slot", f"{slot!r} is none of the vocabulary's")
    entry.one_of("kind", (*KINDS, *_PLAIN_KINDS), "phrase")
    entry.one_of("stance", tuple(Stance), Stance.HOLDS)
    if entry.number("confidence", 0.8) > 1:
        raise entry.wrong("confidence", "a number of at most 1 is needed")
    for flag in ("many", "about", "beside"):
        entry.flag(flag)
    for field in ("value", "wrap", "qualifier", "content"):
        entry.text(field, "")
    unknown = sorted(set(entry.texts("allow")) - set(_MOODS))
    if unknown:
        raise entry.wrong("allow", f"{unknown[0]!r} is none of {', '.join(_MOODS)}")
    _check_patterns(entry)
    return entry.one_of("language", LANGUAGES)


def _check_patterns(entry: Entry) -> None:
    patterns = entry.texts("say")
    if not patterns:
        raise entry.wrong("say", "a pattern is needed")
    for pattern in patterns:
        try:
            assure_bounded(pattern)
        except UnboundedPatternError as exc:
            raise entry.wrong("say", f"{pattern!r}: {exc}") from exc


def _no_name_twice(names: Sequence[str]) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidInputError(f"two rules have the name {twice[0]!r}", field="rules")


def _assure_it_compiles(own: OwnRules, vocabulary: Vocabulary) -> None:
    for language, entries_of in own.by_language.items():
        book = load_rulebook(rule_text(language), vocabulary, own)
        for rule in book.rules[: len(entries_of)]:
            _assure_rule_compiles(rule)


def _assure_rule_compiles(rule: Rule) -> None:
    where = f"rule {rule.name!r}: say"
    for place, text in enumerate(rule.phrases.texts):
        try:
            matches_nothing = rule.phrases[place].match("") is not None
        except KeyError as exc:
            raise InvalidInputError(f"{where}: no such macro: {exc}", field="say") from exc
        except re.error as exc:
            raise InvalidInputError(f"{where}: {text!r}: {exc}", field="say") from exc
        if matches_nothing:
            raise InvalidInputError(f"{where}: {text!r} matches an empty clause", field="say")
