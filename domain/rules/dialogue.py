"""What a turn means only beside another: answers, confirmations, choices, repairs, corrected names."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from domain.rules.rulebook import Ask, Rulebook

_SENTENCE: Final = re.compile(r"[^.!?\n]{1,300}[.!?\n]?")
_SENTENCE_END: Final = re.compile(r"[.!?\n]")
_SECOND_PERSON: Final = re.compile(r"\b(your|yours|yourself|you)\b", re.IGNORECASE)
_FIRST_PERSON: Final = {"your": "my", "you": "me", "yours": "mine", "yourself": "myself"}
_NAME: Final = re.compile(r"[A-Z\u00c0-\u024f][\w'-]+")
_TAIL: Final = 1500
_MAX_ANSWER: Final = 60
_SIMILAR: Final = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A short answer, and the question that it answers."""

    ask: Ask
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A sentence in which the speaker takes something back: what was said, and what replaces it."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCorrection:
    """The right name, and the similar one that the assistant had used."""

    name: str
    used: str


def last_question(text: str) -> str:
    """Return the last sentence of an assistant's turn when it asks something."""
    found = [part.strip() for part in _SENTENCE.findall(text[-_TAIL:]) if part.strip(" .!\n")]
    return found[-1] if found and found[-1].endswith("?") else ""


def short_answer(question: str, reply: str, book: Rulebook) -> Answer | None:
    """Match the head of ``reply`` to what ``question`` asked for."""
    head = _SENTENCE_END.split(reply, maxsplit=1)[0].strip(" ,")
    if not question or not head or len(head) > _MAX_ANSWER or book.dialogue["not_answer"].match(head):
        return None
    head = book.dialogue["answer_lead"].sub("", head)
    ask = next((ask for ask in book.asks if ask.question.search(question)), None)
    return Answer(ask=ask, text=head) if ask and head else None


def chosen(question: str, reply: str, book: Rulebook) -> tuple[str, str] | None:
    """Return what was chosen, and what was not, when ``question`` offered two things."""
    offer = book.dialogue["either_or"].search(question)
    if not offer:
        return None
    first, second = offer["first"].strip(), offer["second"].strip()
    text = reply.casefold().strip(" .!,")
    is_first = bool(book.dialogue["former"].search(text)) or text == first.casefold()
    is_second = bool(book.dialogue["latter"].search(text)) or text == second.casefold()
    if is_first == is_second:
        return None
    return (first, second) if is_first else (second, first)


def confirmed(question: str, reply: str, book: Rulebook) -> str | None:
    """Turn what the assistant asked into the user's statement, when ``reply`` begins with a clear yes."""
    if not question or not book.dialogue["yes"].match(reply) or book.dialogue["yes_but"].search(reply):
        return None
    for pattern, replacement in book.rewrites:
        if pattern.search(question):
            return _as_user(pattern.sub(replacement, question), book)
    return None


def _as_user(text: str, book: Rulebook) -> str:
    text = book.dialogue["tag"].sub("", text.rstrip("? "))
    return _SECOND_PERSON.sub(lambda word: _FIRST_PERSON[word[1].casefold()], text) + "."


def repaired(sentence: str, book: Rulebook) -> Repair | None:
    """Split ``sentence`` at a self-repair."""
    match = book.dialogue["repair"].search(sentence) if "repair" in book.dialogue else None
    if not match:
        return None
    return Repair(before=sentence[: match.start()].strip(" ,-"), after=sentence[match.end() :].strip(" ,.-"))


def renamed(reply: str, previous: str, book: Rulebook) -> NameCorrection | None:
    """Return the right name when ``reply`` corrects a similar name that the assistant has just used."""
    match = book.dialogue["its_name"].match(reply) if "its_name" in book.dialogue else None
    if not match or not match["name"][0].isupper():
        return None
    name = match["name"]
    used = (word for word in _NAME.findall(previous[-_TAIL:]) if word != name)
    near = (
        word for word in used if SequenceMatcher(None, name.casefold(), word.casefold()).ratio() > _SIMILAR
    )
    found = next(near, None)
    return NameCorrection(name=name, used=found) if found else None
