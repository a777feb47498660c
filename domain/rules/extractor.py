"""Extraction by rules: a window in, candidates out. Rules are data; this only interprets them.

It would rather miss ten facts than propose a wrong one (docs/architecture/extraction-by-rules.md).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from domain.candidates import Candidate
from domain.memory.vocabulary import Vocabulary
from domain.ports import LanguageGuesser, WindowCandidates
from domain.rules.languages import PassageLanguage
from domain.rules.loading import LANGUAGES, function_words, load_rulebook, rule_text
from domain.rules.own_rules import OwnRules
from domain.rules.reading import WindowReader
from domain.rules.settling import settle
from domain.rules.statements import StatementReader
from domain.windows import Window, owns

# Longer windows are read in a thread, so that the event loop goes on.
_INLINE_CHARS: Final = 2000


class RuleExtractor:
    """Proposes candidates by rules. Holds rules, read on first use, and nothing of a conversation."""

    def __init__(
        self,
        *,
        vocabulary: Vocabulary,
        languages: LanguageGuesser,
        rule_languages: Sequence[str] = LANGUAGES,
        rules: OwnRules | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._rules = rules or OwnRules()
        self._version = self._rules.version([rule_text(language) for language in sorted(rule_languages)])
        self._rule_languages = frozenset(rule_languages)
        self._readers: dict[str, StatementReader] = {}
        self._small_words: dict[str, frozenset[str]] = {}
        self._language = PassageLanguage(languages, self._function_words)

    async def extract(self, window: Window) -> WindowCandidates:
        """Return the candidates of ``window``, unchecked."""
        if sum(len(message.content) for message in window.messages) <= _INLINE_CHARS:
            return WindowCandidates(candidates=tuple(self.read(window)))
        found = await asyncio.to_thread(self.read, window)
        return WindowCandidates(candidates=tuple(found))

    def read(self, window: Window) -> list[Candidate]:
        """Return the candidates of ``window`` in the order in which they were said."""
        found = WindowReader(window, reader_of=self._reader_of, language=self._language).read()
        own = [replace(one, spec_version=self._version) for one in found if owns(window, one.message_ids)]
        return settle(own, self._vocabulary)

    def load(self, language: str) -> None:
        """Read the rules of ``language`` now, instead of with its first text."""
        self._reader_of(language)

    def _reader_of(self, language: str) -> StatementReader | None:
        if language not in self._rule_languages:
            return None
        reader = self._readers.get(language)
        if reader is None:
            book = load_rulebook(rule_text(language), self._vocabulary, self._rules)
            reader = self._readers[language] = StatementReader(book, self._vocabulary)
        return reader

    def _function_words(self) -> Mapping[str, frozenset[str]]:
        if not self._small_words:
            self._small_words = {name: function_words(name) for name in sorted(self._rule_languages)}
        return self._small_words
