"""What extraction proposes, before it is checked, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.memory.assertions import Amendment, Stance
from domain.memory.slots import SELF


class Method(StrEnum):
    """How a candidate was found."""

    LLM = "llm"
    RULES = "rules"
    MANUAL = "manual"
    MERGED = "merged"


class DropReason(StrEnum):
    """Why a candidate is not kept."""

    SHAPE = "shape"
    LOW_CONFIDENCE = "low_confidence"
    LOW_IMPORTANCE = "low_importance"
    TEMPORARY = "temporary"
    UNGROUNDED = "ungrounded"
    NOT_THE_USERS_WORDS = "not_the_users_words"
    SECRET = "secret"  # noqa: S105 - a reason, not a secret
    SPECIAL_CATEGORY = "special_category"
    INSTRUCTION = "instruction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One statement that a rule or a model proposes to remember.

    ``key`` is a slot of the vocabulary or a free key: a fact about a relative has the plain key
    (``home_city``) and ``about`` (``sister/ana``). ``value`` is as said.
    ``said_at`` is the time of the message that says it. ``position`` counts the candidates of one window
    in the order in which they were said.
    """

    category: str
    key: str
    value: str
    about: str = SELF
    qualifier: str = ""
    stance: Stance = Stance.HOLDS
    amends: Amendment | None = None
    content: str = ""
    confidence: float
    importance: float
    said_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    message_ids: tuple[str, ...]
    excerpt: str = ""
    asserted_by: str = "user"
    method: Method
    model: str | None = None
    spec_version: str | None = None
    reasoning: str = ""
    position: int = 0
