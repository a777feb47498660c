"""The answer of a language model: from the text that came back to candidates.

An answer is tolerated in many shapes and never completed: what is cut, contradicts itself or says nothing
at all is unreadable, and unreadable is a failure. "Nothing to remember" counts only where the answer says so.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.answer_json import Broken, outermost_values
from domain.errors import UnreadableAnswerError
from domain.text_cleaning import clean

MAX_MEMORIES: Final = 200

_LONGEST: Final = 600
_NOTHING: Final = re.compile(
    r"\s*(?:null|none|n/?a|undefined|unknown|not (?:specified|mentioned|provided|given))\b"
    r"(?:\s*[(.,;:-].*)?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_LISTS: Final = ("memories", "facts", "items", "results")
_KEYS: Final = ("fact_key", "key")
_VALUES: Final = ("fact_value", "value")
_CITED: Final = ("source_message_ids", "source_message_id", "message_ids")
_DEFAULT_CONFIDENCE: Final = 0.5
_DEFAULT_IMPORTANCE: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """One statement as a model put it, read but not checked; times are text still."""

    category: str
    key: str
    value: str
    content: str
    confidence: float
    importance: float
    about: str
    qualifier: str
    stance: str
    corrects: str | None
    expires_at: str
    valid_from: str
    cited: tuple[str, ...]
    excerpt: str
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A whole answer; without memories only where the answer itself says that there is nothing."""

    memories: tuple[ModelMemory, ...]
    notes: str = ""


def read_answer(text: str) -> ModelAnswer:
    """Read the answer of a model out of ``text``.

    Raises:
        UnreadableAnswerError: nothing in ``text`` can be read as an answer.
    """
    wrapper = _wrapper(text)
    listed = _listed(wrapper)
    memories = tuple(memory for item in listed if (memory := _memory(item)) is not None)
    if not memories and (listed or not _says_nothing(wrapper)):
        raise UnreadableAnswerError(
            "the answer has no memory that can be read, and does not say that there is none"
        )
    return ModelAnswer(memories=memories[:MAX_MEMORIES], notes=_text(wrapper, "extraction_notes"))


def _wrapper(text: str) -> Mapping[str, object]:
    """Return the last whole answer of ``text``; a bare list, or bare memories, are wrapped.

    Whatever begins like JSON and cannot be read to its end spoils what came before it, and bare memories
    inside of it: they would be a part of an answer taken for the whole.
    """
    found: Mapping[str, object] | None = None
    bare: list[object] = []
    broken = False
    for value in outermost_values(text):
        if isinstance(value, Broken):
            found, broken = None, True
        elif (whole := _whole(value)) is not None:
            found, broken = whole, False
        else:
            bare.extend(_bare(value))
    if found is None and bare and not broken:
        return {"memories": bare}
    if found is None:
        raise UnreadableAnswerError("the answer is cut or no JSON" if broken else "the answer holds no JSON")
    return found


def _whole(value: object) -> Mapping[str, object] | None:
    """Return ``value``, or what it wraps once more, where that is a whole answer."""
    if not isinstance(value, dict):
        return None
    layers = (value, *value.values())
    return next((layer for layer in layers if isinstance(layer, dict) and _is_wrapper(layer)), None)


def _bare(value: object) -> list[object]:
    """Return the memories of ``value`` that stand there without the object around them."""
    items = value if isinstance(value, list) else [value]
    return items if all(isinstance(item, dict) and _is_memory(item) for item in items) else []


def _is_wrapper(value: Mapping[str, object]) -> bool:
    return any(isinstance(value.get(name), list | dict) for name in _LISTS) or "nothing_to_extract" in value


def _is_memory(value: Mapping[str, object]) -> bool:
    return any(name in value for name in _KEYS) and any(name in value for name in _VALUES)


def _listed(wrapper: Mapping[str, object]) -> Sequence[object]:
    """Return the items of an answer; one object in the place of the list is a list of one."""
    for name in _LISTS:
        match wrapper.get(name):
            case list() as items:
                return items
            case dict() as item:
                return [item] if item else []
            case _:
                continue
    return ()


def _says_nothing(wrapper: Mapping[str, object]) -> bool:
    said = wrapper.get("nothing_to_extract")
    return said is True or (isinstance(said, str) and said.strip().casefold() in ("true", "yes"))


def _memory(item: object) -> ModelMemory | None:
    """Read one memory; None where it names no key or no value, or a stance that nobody knows."""
    if not isinstance(item, dict):
        return None
    key, value = _first(item, _KEYS), _first(item, _VALUES)
    stance = _stance(_text(item, "stance"))
    if not key or not value or stance is None:
        return None
    return ModelMemory(
        category=_text(item, "category").casefold(),
        key=key,
        value=value,
        content=_text(item, "content"),
        confidence=confidence_of(item.get("confidence")),
        importance=importance_of(item.get("importance", item.get("importance_score"))),
        about=_text(item, "about"),
        qualifier=_text(item, "qualifier"),
        stance=stance,
        corrects=_corrected(item.get("corrects")),
        expires_at=_text(item, "expires_at"),
        valid_from=_text(item, "valid_from"),
        cited=_cited(item),
        excerpt=_text(item, "source_excerpt"),
        reasoning=_text(item, "reasoning"),
    )


def _first(item: Mapping[str, object], names: Sequence[str]) -> str:
    return next((text for name in names if (text := _text(item, name))), "")


def _text(item: Mapping[str, object], name: str) -> str:
    """Return a field as clean text; what stands for nothing ("null", "not mentioned (…)") is empty."""
    return plain_text(item.get(name))


def plain_text(value: object) -> str:
    """Return ``value`` as text that can be stored, on one line; empty for what stands for nothing."""
    match value:
        case bool():
            text = "yes" if value else "no"
        case int() | float():
            text = str(value).removesuffix(".0")
        case str():
            text = value
        case list():
            text = ", ".join(
                part
                for entry in value
                if isinstance(entry, str | int | float) and (part := plain_text(entry))
            )
        case _:
            return ""
    text = " ".join(clean(text).text.split())
    return "" if _NOTHING.match(text) else text[:_LONGEST]


_STANCES: Final = {
    "": "holds",
    "holds": "holds",
    "positive": "holds",
    "denies": "denies",
    "negative": "denies",
    "held": "held",
    "past": "held",
    "plans": "plans",
    "planned": "plans",
    "forgets": "forgets",
}


def _stance(said: str) -> str | None:
    return _STANCES.get(said.casefold())


def _corrected(value: object) -> str | None:
    """Return the value that is taken back; empty for "what was said before", None for nothing."""
    if isinstance(value, bool):
        return "" if value else None
    return plain_text(value) or None


def _cited(item: Mapping[str, object]) -> tuple[str, ...]:
    for name in _CITED:
        match item.get(name):
            case list() as ids:
                return tuple(cited for entry in ids if (cited := plain_id(entry)))
            case str() | int() | float() as one:
                return tuple(cited for entry in plain_text(one).split(",") if (cited := plain_id(entry)))
            case _:
                continue
    return ()


def plain_id(value: object) -> str:
    """Return the id of a message in the form in which a model's spelling of it is compared."""
    return plain_text(value).strip("[]<> ")


def confidence_of(said: object) -> float:
    """Return ``said`` between 0 and 1; what is no number waits for a second word."""
    number = _number(said)
    return _DEFAULT_CONFIDENCE if number is None else min(max(number, 0.0), 1.0)


def importance_of(said: object) -> float:
    """Return ``said`` between 1 and 10; a broken number below 1 is meant on the scale from 0 to 1."""
    number = _number(said)
    if number is None:
        return _DEFAULT_IMPORTANCE
    return min(max(number * 10 if 0 < number < 1 else number, 1.0), 10.0)


_NUMERIC: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(%|/\s*10\b)?", re.IGNORECASE)


def _number(said: object) -> float | None:
    match said:
        case bool():
            return None
        case int() | float():
            return _finite(said)
        case str():
            found = _NUMERIC.match(said[:64])
            if found is None:
                return None
            number = _finite(float(found.group(1)))
            return number / 100 if number is not None and found.group(2) == "%" else number
        case _:
            return None


def _finite(number: float) -> float | None:
    """Return ``number`` as a float; infinity is the end of every scale, and NaN is no number."""
    try:
        number = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return None if math.isnan(number) else number
