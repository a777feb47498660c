"""The checks on a candidate, from rules or from a model (docs/architecture/extraction.md, "Checks")."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from domain.candidates import Candidate, DropReason
from domain.conversation import Message
from domain.grounding import Grounding, grounding_of
from domain.instructions import is_instruction
from domain.memory.keys import canonical_key
from domain.memory.sentences import sentence_of
from domain.memory.slots import read_key
from domain.memory.stances import Stance
from domain.memory.values import EVERYTHING
from domain.memory.vocabulary import SlotType, builtin_vocabulary
from domain.secrets import MARK, holds_secret, redact
from domain.special_categories import special_category
from domain.windows import Window

LONGEST_VALUE: Final = 200
SHORTEST_CONTENT: Final = 10
LONGEST_CONTENT: Final = 500
LEAST_IMPORTANCE: Final = 2.0

_SAYS_SOMETHING: Final = re.compile(r"[^\W_]|[\U0001F300-\U0001FAFF]")
_TEMPORARY: Final = re.compile(
    r"\b(?:current|ongoing|this|present) (?:\w+ )?(?:session|conversation|chat|tab|terminal|prompt|"
    r"request)\b|"
    r"\bnext (?:\w+ )?(?:command|prompt|keystroke)\b|"
    r"\b(?:currently|right now|at the moment) (?:is |are )?"
    r"(?:debugging|typing|compiling|logging in|scrolling|waiting for (?:an? |the )?(?:build|download|"
    r"reply))\b",
    re.IGNORECASE,
)
_MEMORY_BLOCK: Final = re.compile(
    r"^#{1,4} *user memory\b[^\n]*\n(?:[^\n]+\n?|\n(?=[-*]))*(?:\n?use these facts [^\n]*\n?)?",
    re.IGNORECASE | re.MULTILINE,
)
_MEMORY_LINE: Final = re.compile(r"^\s*[-*] \[[a-z_ ]{3,30}\] [^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a tenant keeps; ``allowed_categories`` names special categories that are kept after all."""

    min_confidence: float = 0.65
    pending_confidence: float = 0.45
    allowed_categories: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kept:
    """A confident statement."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Pending:
    """A statement that waits for another one; it is evidence like any other, its confidence decides."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing to remember, and why."""

    reason: DropReason


def check(candidate: Candidate, window: Window, policy: Policy) -> Kept | Pending | Dropped:
    """Decide what becomes of ``candidate``, read in ``window``; a kept one comes back in its due form."""
    shaped = _shaped(candidate)
    if shaped is None:
        return Dropped(DropReason.SHAPE)
    reason = _unfit(shaped, policy) or _unsaid(shaped, window)
    if reason is not None:
        return Dropped(reason)
    if shaped.confidence >= policy.min_confidence:
        return Kept(shaped)
    return (
        Pending(shaped)
        if shaped.confidence >= policy.pending_confidence
        else Dropped(DropReason.LOW_CONFIDENCE)
    )


def masked(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Hide what nobody said: system prompts, tool output, and memories that this service had injected."""
    return tuple(_masked(message) for message in messages)


def _masked(message: Message) -> Message:
    if not (message.is_user or message.is_assistant):
        return replace(message, content=MARK)
    text = _MEMORY_LINE.sub(MARK, _MEMORY_BLOCK.sub(f"{MARK}\n", message.content))
    return message if text == message.content else replace(message, content=text)


def _shaped(candidate: Candidate) -> Candidate | None:
    """Give ``candidate`` its canonical key, a category that exists, a sentence and numbers in range."""
    value = candidate.value.strip()
    is_everything = value == EVERYTHING and candidate.stance in (Stance.DENIES, Stance.FORGETS)
    says_something = is_everything or bool(_SAYS_SOMETHING.search(value))
    if not says_something or len(value) > LONGEST_VALUE:
        return None
    is_about_all = is_everything and candidate.key == EVERYTHING
    if not is_about_all and not _SAYS_SOMETHING.search(candidate.key):
        return None
    key = EVERYTHING if is_about_all else canonical_key(candidate.key)
    kind = builtin_vocabulary().find(key)
    return replace(
        candidate,
        key=key,
        value=value,
        category=_category(candidate.category, kind),
        content=_content(candidate, key, value),
        confidence=_within(candidate.confidence, 0.0, 1.0),
        importance=_within(candidate.importance, 0.0, 10.0),
        expires_at=candidate.expires_at or _end_of_life(candidate, kind),
    )


def _category(given: str, kind: SlotType | None) -> str:
    if given in builtin_vocabulary().types:
        return given
    return kind.category if kind is not None else "fact"


def _content(candidate: Candidate, key: str, value: str) -> str:
    content = " ".join(candidate.content.split())
    if SHORTEST_CONTENT <= len(content) <= LONGEST_CONTENT:
        return content
    slot, implied = read_key(key, candidate.about, candidate.qualifier)
    said = sentence_of(slot, value, implied or candidate.stance)
    return said if len(said) >= SHORTEST_CONTENT else f"User's {said}"


def _within(number: float, least: float, most: float) -> float:
    return least if math.isnan(number) else min(max(number, least), most)


def _end_of_life(candidate: Candidate, kind: SlotType | None) -> datetime | None:
    """Return when a statement expires by its slot; what was, or is not, stays."""
    if kind is None or not kind.lifespan_days or candidate.stance not in (Stance.HOLDS, Stance.PLANS):
        return None
    return candidate.said_at + timedelta(days=kind.lifespan_days)


def _unfit(candidate: Candidate, policy: Policy) -> DropReason | None:
    """Return why ``candidate`` may not be remembered, by what it says."""
    texts = (candidate.value, candidate.content, candidate.excerpt)
    if any(holds_secret(text) for text in (candidate.value, candidate.content)) or _has_secret(
        candidate.excerpt
    ):
        return DropReason.SECRET
    if candidate.stance is Stance.FORGETS:
        return None
    if is_instruction(candidate.key, *texts):
        return DropReason.INSTRUCTION
    category = special_category(candidate.key, builtin_vocabulary().find(candidate.key), *texts[:2])
    if category is not None and category not in policy.allowed_categories:
        return DropReason.SPECIAL_CATEGORY
    if any(_TEMPORARY.search(text) for text in texts[:2]):
        return DropReason.TEMPORARY
    return DropReason.LOW_IMPORTANCE if candidate.importance < LEAST_IMPORTANCE else None


def _has_secret(excerpt: str) -> bool:
    """Tell whether ``excerpt`` holds a secret; the mark of one that was taken out before is none."""
    return redact(excerpt) != excerpt


def _unsaid(candidate: Candidate, window: Window) -> DropReason | None:
    """Return why ``candidate`` is not what the user said."""
    if not any(
        message.is_user and message.message_id in candidate.message_ids for message in window.messages
    ):
        return DropReason.NOT_THE_USERS_WORDS if candidate.message_ids else DropReason.UNGROUNDED
    match grounding_of(candidate, window):
        case Grounding.SAID | Grounding.CONFIRMED:
            return None
        case Grounding.SAID_BY_ANOTHER:
            return DropReason.NOT_THE_USERS_WORDS
        case Grounding.NOWHERE:
            return DropReason.UNGROUNDED
        case unreachable:
            assert_never(unreachable)
