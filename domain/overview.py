"""The first of two passes: who and what a conversation is about, read across its messages as hints.

It is asked for only where one statement may depend on another far away from it: a conversation of some length
that speaks of several things at once (docs/architecture/extraction.md, "Two passes"). Hints decide nothing;
what is reported is found in the messages, as without them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from domain.answer_json import Broken, outermost_values
from domain.errors import UnreadableAnswerError
from domain.grounding import plain
from domain.model_answer import plain_text
from domain.windows import Window

T = TypeVar("T", bound=tuple[str, ...])

_LEAST_MESSAGES: Final = 4
_LEAST_CHARS: Final = 240
_LEAST_USER_TURNS: Final = 2
_LEAST_SIGNALS: Final = 2
_MOST_HINTS: Final = 24
_LONGEST: Final = 80

# English, German, French and Spanish in one: a signal that is missed costs hints, never a memory.
_SIGNALS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for name, words in {
        "identity": r"my name|call me|i am|i'm|i work|i live|ich bin|ich heiße|ich wohne|ich arbeite|je suis|"
        r"je m'appelle|j'habite|je travaille|soy|me llamo|vivo|trabajo",
        "team": r"team|colleagues?|manager|boss|cowork\w+|kolleg\w+|chef(?:in)?|équipe|collègues?|equipo|"
        r"compañer\w+|jefe|jefa|wife|husband|partner|sister|brother|frau|mann|femme|mari|esposa|marido",
        "project": r"projects?|launch\w*|release\w*|deploy\w*|prototype|client|projekt\w*|"
        r"projets?|proyectos?",
        "goal": r"goals?|want to|plan(?:ning)? to|hope to|going to|trying to|ziel\w*|möchte|vorhaben|"
        r"objectifs?|"
        r"je veux|voudrais|objetivos?|quiero|planeo",
        "preference": r"prefer\w*|favou?rite|like|love|hate|dislike|lieber|mag|hasse|préfère|adore|déteste|"
        r"prefiero|me gusta|encanta|odio",
        "timeline": r"yesterday|tomorrow|next (?:week|month|year)|last (?:week|month|year)|since|until|"
        r"deadline|"
        r"gestern|morgen|seit|nächste\w*|letzte\w*|hier|demain|depuis|prochaine?|ayer|mañana|desde|"
        r"próxim[oa]|(?:19|20)\d\d",
    }.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a first pass found: names with what they are, and how they are related."""

    entities: tuple[tuple[str, str], ...] = ()
    relations: tuple[tuple[str, str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand on."""
        return not (self.entities or self.relations)


def deserves_overview(window: Window) -> bool:
    """Say whether a first pass over ``window`` is worth its call."""
    own = [message.content for message in window.messages if message.is_user]
    long_enough = len(window.messages) >= _LEAST_MESSAGES and len(own) >= _LEAST_USER_TURNS
    if not long_enough or sum(len(message.content) for message in window.messages) < _LEAST_CHARS:
        return False
    said = "\n".join(own)
    return sum(signal.search(said) is not None for signal in _SIGNALS.values()) >= _LEAST_SIGNALS


def read_overview(text: str, window: Window) -> Overview:
    """Read the answer of a first pass; what names nothing in the messages of ``window`` is left out.

    Raises:
        UnreadableAnswerError: there is no overview in ``text``.
    """
    found = _whole(text)
    said = " ".join(plain(message.content) for message in window.messages)
    entities = (
        (name, _field(item, "kind"))
        for item in _items(found.get("entities"))
        if _is_said(name := _field(item, "name"), said)
    )
    relations = (
        (one, relation, other)
        for item in _items(found.get("relations"))
        if (relation := _field(item, "relation"))
        and _is_of_the_user_or_said(one := _field(item, "from"), said)
        and _is_of_the_user_or_said(other := _field(item, "to"), said)
    )
    return Overview(entities=_first(entities), relations=_first(relations))


def _whole(text: str) -> Mapping[str, object]:
    found: Mapping[str, object] | None = None
    for value in outermost_values(text):
        if isinstance(value, Broken):
            found = None
        elif isinstance(value, dict) and ("entities" in value or "relations" in value):
            found = value
    if found is None:
        raise UnreadableAnswerError("the answer holds no overview")
    return found


def _items(value: object) -> Iterable[Mapping[str, object]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _field(item: Mapping[str, object], name: str) -> str:
    return plain_text(item.get(name))[:_LONGEST]


def _is_said(name: str, said: str) -> bool:
    return bool(plain(name)) and plain(name) in said


def _is_of_the_user_or_said(name: str, said: str) -> bool:
    return name.casefold() in ("user", "the user") or _is_said(name, said)


def _first(found: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(found))[:_MOST_HINTS]
