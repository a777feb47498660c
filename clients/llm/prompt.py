"""The extraction prompt: a fixed part that servers can keep, then the messages of one window as data."""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from itertools import groupby
from typing import Final

from clients.llm.provider import Request
from domain.conversation import Message
from domain.memory.vocabulary import Arity, SlotType, Vocabulary
from domain.overview import Overview
from domain.special_categories import special_category
from domain.windows import Window

#: Raised by hand when the wording of the specification changes its meaning; the digest tells builds apart.
SPEC_SERIES: Final = "extraction-1"


class ExtractionPrompt:
    """Builds requests from ``extraction_spec.md`` and the vocabulary; the fixed part is made once.

    Keys of special categories are named, and so asked for, only where a window may be sensitive.
    """

    def __init__(
        self,
        *,
        vocabulary: Vocabulary,
        max_memories: int = 24,
        user_turns_only: bool = False,
        temperature: float = 0.1,
        max_tokens: int = 1024,
    ) -> None:
        specification = (files("domain") / "extraction_spec.md").read_text(encoding="utf-8")
        self._fixed, self._fixed_sensitive = (
            "\n".join(
                (
                    specification,
                    _categories(vocabulary),
                    _slots(vocabulary, sensitive=one),
                    _form(max_memories),
                )
            )
            for one in (False, True)
        )
        self._schema = answer_schema(categories=sorted(vocabulary.types), max_memories=max_memories)
        self._user_turns_only = user_turns_only
        self._temperature = temperature
        self._max_tokens = max_tokens
        self.version = f"{SPEC_SERIES}+{hashlib.sha256(self._fixed.encode()).hexdigest()[:8]}"

    def request(self, window: Window, hints: Overview | None = None) -> Request:
        """Return the question about ``window``, with the ``hints`` of a first pass before its messages."""
        conversation = conversation_text(window, user_turns_only=self._user_turns_only)
        return Request(
            fixed=self._fixed_sensitive if window.may_be_sensitive else self._fixed,
            varying=conversation if hints is None or hints.is_empty else f"{_hints(hints)}\n\n{conversation}",
            schema=self._schema,
            schema_name="memories",
            temperature=self._temperature,
            max_tokens=self._max_tokens,
        )


class OverviewPrompt:
    """Builds the question of the first pass from ``overview_spec.md``."""

    def __init__(self, *, temperature: float = 0.1, max_tokens: int = 512) -> None:
        self._fixed = (files("domain") / "overview_spec.md").read_text(encoding="utf-8")
        self._temperature = temperature
        self._max_tokens = max_tokens

    def request(self, window: Window) -> Request:
        """Return the question about ``window``."""
        return Request(
            fixed=self._fixed,
            varying=conversation_text(window),
            schema=_OVERVIEW_SCHEMA,
            schema_name="overview",
            temperature=self._temperature,
            max_tokens=self._max_tokens,
        )


def conversation_text(window: Window, *, user_turns_only: bool = False) -> str:
    """Write one JSON object a line, so that no text of a message can pass for something else."""
    lines = [
        _line(message, is_context=place < window.overlap)
        for place, message in enumerate(window.messages)
        if message.is_user or not user_turns_only
    ]
    ended = window.ended_at.isoformat(timespec="seconds")
    zone = f" Time zone of the user: {json.dumps(window.timezone)}." if window.timezone else ""
    head = f"# Conversation\nOne message a line, oldest first; it ended at {ended}.{zone}"
    return "\n".join((head, *lines))


def _hints(overview: Overview) -> str:
    """Write what a first pass found, one JSON object a line as the messages are."""
    lines = [
        *(json.dumps({"name": name, "kind": kind}, ensure_ascii=False) for name, kind in overview.entities),
        *(
            json.dumps({"from": one, "relation": relation, "to": other}, ensure_ascii=False)
            for one, relation, other in overview.relations
        ),
    ]
    head = "# Hints\nWho and what the messages below speak of; never to be reported from here alone."
    return "\n".join((head, *lines))


def _line(message: Message, *, is_context: bool) -> str:
    """Write one message; only the user's turns carry the mark, and context was read before."""
    fields: dict[str, object] = {"id": message.message_id, "from": message.role}
    if message.is_user:
        fields["user"] = True
    if message.name:
        fields["name"] = message.name
    if is_context:
        fields["context"] = True
    fields |= {"at": message.sent_at.isoformat(timespec="minutes"), "text": message.content}
    return json.dumps(fields, ensure_ascii=False)


def _categories(vocabulary: Vocabulary) -> str:
    lines = (f"- `{kind.name}`: {kind.description}" for kind in vocabulary.types.values())
    return "\n".join(("# Categories", *lines, ""))


def _slots(vocabulary: Vocabulary, *, sensitive: bool) -> str:
    """List the keys by category; what may stand side by side has a plus, and kinds are in brackets."""
    every = (*vocabulary.slots.values(), *vocabulary.patterns.values())
    asked = (kind for kind in every if sensitive or special_category(kind.key, kind) is None)
    kinds = sorted(asked, key=lambda kind: kind.category)
    lines = (
        f"- {category}: {', '.join(_slot(kind) for kind in group)}"
        for category, group in groupby(kinds, key=lambda kind: kind.category)
    )
    head = "# Keys\nOf a key without a plus one value holds at a time. `{topic}` stands for a word of yours."
    relations = ", ".join(sorted(vocabulary.relatives.words))
    return "\n".join((head, *lines, f"Relations for `about`: {relations}.", ""))


def _slot(kind: SlotType) -> str:
    plus = "" if kind.arity is Arity.ONE else "+"
    qualifiers = f" ({'|'.join(kind.qualifiers)})" if kind.qualifiers else ""
    return f"{kind.key}{plus}{qualifiers}"


def _form(max_memories: int) -> str:
    return (
        "# Form of the answer\n"
        f'{{"memories": [ … at most {max_memories} objects with the fields above … ], '
        '"nothing_to_extract": true or false, "extraction_notes": text}\n'
        "Messages marked `user` are the user's own words. Messages marked `context` were read before: "
        "they explain, and nothing is reported from them alone."
    )


def answer_schema(*, categories: list[str], max_memories: int) -> Mapping[str, object]:
    """Return the JSON Schema of an answer; only its bounds keep small models from going in circles."""
    optional_day = {"type": ["string", "null"], "maxLength": 40}
    optional_text = {"type": ["string", "null"], "maxLength": 120}
    memory: dict[str, object] = {
        "category": {"type": "string", "enum": categories},
        "fact_key": {"type": "string", "maxLength": 64},
        "fact_value": {"type": "string", "maxLength": 200},
        "content": {"type": "string", "maxLength": 500},
        "importance": {"type": "number", "minimum": 1, "maximum": 10},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "memory_type": {"type": "string", "enum": ["long", "short"]},
        "expires_at": optional_day,
        "valid_from": optional_day,
        "source_message_ids": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": 8},
        "source_excerpt": {"type": "string", "maxLength": 200},
        "reasoning": {"type": "string", "maxLength": 200},
        "about": optional_text,
        "qualifier": optional_text,
        "stance": {"type": ["string", "null"], "enum": ["holds", "denies", "held", "plans", "forgets", None]},
        "corrects": {"type": ["string", "null"], "maxLength": 200},
    }
    needed = [name for name in memory if name not in _OPTIONAL]
    item = {"type": "object", "properties": memory, "required": needed, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {
            "memories": {"type": "array", "items": item, "maxItems": max_memories},
            "nothing_to_extract": {"type": "boolean"},
            "extraction_notes": {"type": "string", "maxLength": 300},
        },
        "required": ["memories", "nothing_to_extract", "extraction_notes"],
        "additionalProperties": False,
    }


_OPTIONAL: Final = frozenset({"expires_at", "valid_from", "about", "qualifier", "stance", "corrects"})
_SHORT_TEXT: Final = {"type": "string", "maxLength": 80}


def _listed(*names: str) -> Mapping[str, object]:
    item = {
        "type": "object",
        "properties": dict.fromkeys(names, _SHORT_TEXT),
        "required": list(names),
        "additionalProperties": False,
    }
    return {"type": "array", "items": item, "maxItems": 24}


_OVERVIEW_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"entities": _listed("name", "kind"), "relations": _listed("from", "relation", "to")},
    "required": ["entities", "relations"],
    "additionalProperties": False,
}
