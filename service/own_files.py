"""The operator's own files: memory types and slots, and rules. A wrong one stops the start."""

from pathlib import Path

from domain.errors import InvalidInputError
from domain.memory.vocabulary import Vocabulary, add_to_vocabulary, builtin_vocabulary
from domain.rules.own_file import assure_known, read_own_rules
from domain.rules.own_rules import OwnRules
from service.settings import Settings, SettingsError


def vocabulary_of(settings: Settings) -> Vocabulary:
    """Return the vocabulary with what ``MEMORY_TYPES_FILE`` adds to it.

    Raises:
        SettingsError: the file is wrong; the message names it and its line or entry.
    """
    path = settings.memory_types_file
    if path is None:
        return builtin_vocabulary()
    text = _text(path, "MEMORY_TYPES_FILE")
    try:
        return add_to_vocabulary(text)
    except InvalidInputError as exc:
        raise SettingsError(f"MEMORY_TYPES_FILE: {path}: {exc}") from exc


def rules_beside(settings: Settings, vocabulary: Vocabulary) -> OwnRules:
    """Return the rules of ``MEMORY_RULES_FILE``, and which rules ``MEMORY_RULES_OFF`` switches off.

    Raises:
        SettingsError: the file is wrong, or a name is unknown.
    """
    off, path = frozenset(settings.memory_rules_off), settings.memory_rules_file
    own = OwnRules(off=off) if path is None else _own_rules(path, vocabulary)
    try:
        assure_known(off, own.names)
    except InvalidInputError as exc:
        raise SettingsError(f"MEMORY_RULES_OFF: {exc}") from exc
    return own.without(off)


def _own_rules(path: Path, vocabulary: Vocabulary) -> OwnRules:
    text = _text(path, "MEMORY_RULES_FILE")
    try:
        return read_own_rules(text, vocabulary)
    except InvalidInputError as exc:
        raise SettingsError(f"MEMORY_RULES_FILE: {path}: {exc}") from exc


def _text(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{name}: {path} cannot be read: {type(exc).__name__}") from exc
