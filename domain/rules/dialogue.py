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
_WORDS: Final = re.compile(r"[^\W_]+")
_REFUSES: Final = re.compile(r"\b(?:not|neither|both|nor|no|never|don't|hate|nicht|pas|no)\b")
_FEW_WORDS: Final = 3
_TAIL: Final = 1500
_MAX_ANSWER: Final = 60
_SIMILAR: Final = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A short answer, and the question that it answers."""

    ask: Ask
    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A sentence in which the speaker takes something back: what was said, and what replaces it.

    A bare one names the new value alone ("Actually it's Salford"), and means what was said last if that is
    of the same kind.
    """

    before: str
    after: str
    is_bare: bool = False


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
    if question and "split" in book.clause:
        head = head[: _first_joint(head, book)].strip(" ,")
    if not question or not head or len(head) > _MAX_ANSWER or book.dialogue["not_answer"].match(head):
        return None
    head = book.dialogue["answer_lead"].sub("", head)
    if book.dialogue["not_answer"].match(head):
        return None
    asked = ((ask, ask.question.search(question)) for ask in book.asks)
    found = next(((ask, match) for ask, match in asked if match), None)
    if found is None or not head:
        return None
    topic = next(
        (text for name, text in found[1].groupdict().items() if name.startswith("topic") and text), ""
    )
    return Answer(ask=found[0], text=head, topic=topic)


def _first_joint(text: str, book: Rulebook) -> int:
    """Return where a second clause begins in ``text``."""
    match = next((one for one in book.clause["split"].finditer(text) if one.start()), None)
    return match.start() if match else len(text)


def contradicted(question: str, reply: str, book: Rulebook) -> tuple[str, str] | None:
    """Return what the assistant had asked as the user's statement, and the words that set it right.

    "Do you live in Hamburg?" "No, in Bremen."
    """
    match = book.dialogue["no_but"].match(reply) if "no_but" in book.dialogue else None
    if not question or match is None or book.anchor.search(match["right"]):
        return None
    for pattern, replacement in book.rewrites:
        if pattern.search(question):
            return _as_user(pattern.sub(replacement, question), book), match["right"].strip(" .!")
    return None


def chosen(question: str, reply: str, book: Rulebook) -> tuple[str, str] | None:
    """Return what was chosen, and what was not, when ``question`` offered two things."""
    offer = book.dialogue["either_or"].search(question)
    if not offer:
        return None
    first, second = offer["first"].strip(), offer["second"].strip()
    text = reply.casefold().strip(" .!,")
    is_first = bool(book.dialogue["former"].search(text)) or _names_only(text, first, second)
    is_second = bool(book.dialogue["latter"].search(text)) or _names_only(text, second, first)
    if is_first == is_second:
        return None
    return (first, second) if is_first else (second, first)


def _names_only(text: str, one: str, other: str) -> bool:
    """Tell whether ``text`` is the name of ``one`` with few words around it, and without ``other``."""
    words, wanted = _WORDS.findall(text), _WORDS.findall(one.casefold())
    is_short = len(words) <= len(wanted) + _FEW_WORDS
    is_named = f" {' '.join(wanted)} " in f" {' '.join(words)} "
    return is_short and is_named and other.casefold() not in text and not _REFUSES.search(text)


def confirmed(question: str, reply: str, book: Rulebook) -> str | None:
    """Turn what the assistant asked into the user's statement, when ``reply`` begins with a clear yes."""
    if not question or not book.dialogue["yes"].match(reply) or book.dialogue["yes_but"].search(reply):
        return None
    if "open_question" in book.dialogue and book.dialogue["open_question"].search(question):
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
        return _set_straight(sentence, book)
    return Repair(before=sentence[: match.start()].strip(" ,-"), after=sentence[match.end() :].strip(" ,.-"))


def _set_straight(sentence: str, book: Rulebook) -> Repair | None:
    """Read "Actually it's Salford", which only a name or a number can mean of what was said last."""
    match = book.dialogue["its_value"].match(sentence) if "its_value" in book.dialogue else None
    if match is None or not (match["right"][0].isupper() or match["right"][0].isdigit()):
        return None
    return Repair(before="", after=match["right"], is_bare=True)


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
