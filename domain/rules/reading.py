"""Reading one window: turn by turn, with what a turn means beside the one before, and what is taken back."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from domain.candidates import Candidate, Method
from domain.conversation import Message
from domain.memory.assertions import Corrects
from domain.memory.slots import SELF
from domain.memory.stances import Stance
from domain.memory.values import EVERYTHING, normalise
from domain.rules.clauses import EXCERPT_CHARS, Sentence, sentences
from domain.rules.dialogue import (
    Repair,
    chosen,
    confirmed,
    contradicted,
    last_question,
    renamed,
    repaired,
    short_answer,
)
from domain.rules.forgetting import Forgotten, forgotten_slots
from domain.rules.languages import PassageLanguage
from domain.rules.persons import Persons
from domain.rules.rulebook import Rulebook
from domain.rules.settling import numbered
from domain.rules.statements import Source, StatementReader
from domain.rules.voice import Passage, own_words
from domain.secrets import redact
from domain.text_cleaning import readable
from domain.windows import Window

_FEW_CHARS: Final = 60
_HEAD: Final = 500
_CONFIRMED_CONFIDENCE: Final = 0.8
_CAPITAL_STARTS: Final = 0.3
_CAPITAL_WORDS: Final = 0.04
_SENTENCE_END: Final = re.compile(r"[.!?\n](?=\s|$)")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_START: Final = re.compile(r"(?:^|[.!?]\s+|\n)[^\W\d_]")
_SAYS_I: Final = re.compile(r"(?<!\w)I(?!\w)")


class WindowReader:
    """Reads one window; holds what was found so far, since a later turn may take it back."""

    def __init__(
        self, window: Window, *, reader_of: Callable[[str], StatementReader | None], language: PassageLanguage
    ) -> None:
        self._window = window
        self._reader_of = reader_of
        self._language = language
        self._timezone = _zone(window.timezone)
        self._texts = [redact(readable(message.content)) for message in window.messages]
        self._said = [
            own_words(text) if message.is_user and text else []
            for message, text in zip(window.messages, self._texts, strict=True)
        ]
        own = "\n".join(passage.text for passages in self._said for passage in passages)
        self._main = self._main_language(own)
        self._cased = _is_cased(own)
        self._found: list[Candidate] = []
        self._in_fiction = False
        self._last_id = ""

    def read(self) -> list[Candidate]:
        """Return what the user says in the window, in the order in which it is said."""
        previous: int | None = None
        for index, message in enumerate(self._window.messages):
            if not self._texts[index]:
                continue
            if message.is_user:
                self._read_turn(index, previous)
                self._number(message)
                self._last_id = message.message_id
            previous = index
        return self._found

    def _number(self, message: Message) -> None:
        fresh = [one for one in self._found if one.message_ids[-1] == message.message_id]
        older = [one for one in self._found if one.message_ids[-1] != message.message_id]
        self._found = [*older, *numbered(fresh, message.position)]

    def _read_turn(self, index: int, previous: int | None) -> None:
        message = self._window.messages[index]
        for passage in self._said[index]:
            reader = self._reader_of(self._language.of(passage.text, self._main) or "")
            if reader is None or self._is_no_statement(passage.text, reader.book):
                continue
            source = Source(
                message=message, cased=self._cased, timezone=self._timezone, speaker=passage.speaker
            )
            self._read_passage(passage, reader, source, previous)
            self._found += reader.profile(passage.profile, source)
            if self._last_id and reader.book.modality["_retraction"].match(passage.text):
                self._take_back(self._last_id, source)

    def _is_no_statement(self, text: str, book: Rulebook) -> bool:
        self._in_fiction = _is_fiction(text, book, in_fiction=self._in_fiction)
        moods = (book.modality.get("_private"), book.modality.get("_fiction_here"))
        return self._in_fiction or any(mood.search(text) for mood in moods if mood)

    def _read_passage(
        self, passage: Passage, reader: StatementReader, source: Source, previous: int | None
    ) -> None:
        text = _own_head(passage.text, reader.book)
        if previous is not None:
            self._found += self._answers(text, reader, source, previous)
        persons = reader.persons()
        for sentence in sentences(text):
            self._read_sentence(sentence, reader, source, persons)

    def _read_sentence(
        self, sentence: Sentence, reader: StatementReader, source: Source, persons: Persons
    ) -> None:
        taken_back = reader.book.modality["_retraction"].match(sentence.text)
        if taken_back:
            self._take_back(source.message.message_id, source)
            rest = sentence.text[taken_back.end() :]
            self._found += reader.read(rest, source, is_question=sentence.is_question)
            return
        forgotten = self._forgotten(sentence.text, reader, source)
        if forgotten is not None:
            # What is said and forgotten in one conversation is not even stored.
            kept = [one for one in self._found if not any(_covers(request, one) for request in forgotten)]
            self._found = [*kept, *forgotten]
            return
        repair = repaired(sentence.text, reader.book)
        if repair is not None:
            excerpt = sentence.text[:EXCERPT_CHARS]
            self._found += [replace(one, excerpt=excerpt) for one in self._repair(repair, reader, source)]
            return
        self._found += reader.read(sentence.text, source, is_question=sentence.is_question, persons=persons)

    def _take_back(self, message_id: str, source: Source) -> None:
        """Unsay what a message said; what an earlier window has already proposed is forgotten instead."""
        overlap = {message.message_id for message in self._window.messages[: self._window.overlap]}
        gone = [one for one in self._found if message_id in one.message_ids]
        self._found = [one for one in self._found if message_id not in one.message_ids]
        if message_id in overlap:
            self._found += [_forgotten_later(one, source.message) for one in gone]

    def _answers(self, text: str, reader: StatementReader, source: Source, previous: int) -> list[Candidate]:
        before = self._window.messages[previous]
        book = reader.book
        if not before.is_assistant or "not_answer" not in book.dialogue:
            return []
        cited = replace(source, also=(before.message_id,))
        correction = renamed(text, self._texts[previous], book)
        if correction is not None:
            named = reader.assign("name", correction.name, text, cited)
            return [replace(named, amends=Corrects(correction.used))]
        question = last_question(self._texts[previous])
        statement = confirmed(question, text, book)
        if statement:
            return [_confirmed(one, question) for one in reader.read(statement, cited)]
        denied = contradicted(question, text, book)
        if denied:
            return _set_right(denied, reader, cited)
        choice = chosen(question, text, book)
        if choice:
            return [reader.assign("prefers", f"{choice[0]} over {choice[1]}", text, cited)]
        return _short_answers(question, text, reader, cited)

    def _repair(self, repair: Repair, reader: StatementReader, source: Source) -> list[Candidate]:
        """Read the repaired sentence: the new words alone, or the old ones with the new value in place."""
        wrong = reader.read(repair.before, source)
        right = reader.read(repair.after, source)
        last = wrong[-1] if wrong else self._said_before(repair)
        if repair.is_bare and (last is None or not _is_alike(last.value, repair.after)):
            return right
        base = repair.before or (last.excerpt if last else "")
        if repair.after and not right and last and last.value in base:
            right = reader.read(_with_new_value(base, last.value, repair.after, cased=source.cased), source)
        corrects = last is not None and any(_is_same_slot(one, last) for one in right)
        fixed = [
            replace(one, amends=Corrects(last.value)) if last and _is_same_slot(one, last) else one
            for one in right
        ]
        # The slip stays beside its correction, which takes it out of the story; alone it was never meant.
        return [*(wrong if corrects else wrong[:-1]), *fixed]

    def _said_before(self, repair: Repair) -> Candidate | None:
        if repair.before.strip(" .,"):
            return None
        return self._found[-1] if self._found else None

    def _forgotten(self, text: str, reader: StatementReader, source: Source) -> list[Candidate] | None:
        """Return what ``text`` asks to forget, None when it asks for nothing of the kind."""
        book = reader.book
        match = book.modality["_forget"].search(text)
        if not match or book.modality["_not_forget"].search(text):
            return None
        what = text[match.end() :].strip(" .!?,")
        stated = [replace(one, stance=Stance.FORGETS, amends=None) for one in reader.read(what, source)]
        targets = forgotten_slots(what, book)
        return [*stated, *(_forgets(target, text, source) for target in targets)]

    def _main_language(self, own: str) -> str | None:
        """Return the conversation's language; few words of the user leave it open, the whole then tells."""
        if len(own) >= _FEW_CHARS:
            return self._language.main(own)
        heads = [
            text[:_HEAD]
            for message, text in zip(self._window.messages, self._texts, strict=True)
            if message.is_user or message.is_assistant
        ]
        stated = (self._window.language or "").partition("-")[0].casefold()
        return self._language.main("\n".join([own, *heads])) or stated or None


def _forgotten_later(candidate: Candidate, message: Message) -> Candidate:
    ids = (*candidate.message_ids, message.message_id)
    return replace(candidate, stance=Stance.FORGETS, amends=None, said_at=message.sent_at, message_ids=ids)


def _confirmed(candidate: Candidate, question: str) -> Candidate:
    return replace(
        candidate,
        confidence=min(candidate.confidence, _CONFIRMED_CONFIDENCE),
        excerpt=question[:EXCERPT_CHARS],
        reasoning=f"confirmed by the user; {candidate.reasoning}",
    )


def _set_right(denied: tuple[str, str], reader: StatementReader, source: Source) -> list[Candidate]:
    """Read what was asked with the user's own words in the place of the value that is wrong."""
    asked, right = denied
    guessed = reader.read(asked, source)
    if not guessed or guessed[-1].value not in asked:
        return []
    head = asked[: asked.rindex(guessed[-1].value)].rstrip()
    last = head.rsplit(maxsplit=1)[-1].casefold() if head else ""
    own = right.split(maxsplit=1)[1] if last and right.casefold().startswith(f"{last} ") else right
    found = reader.read(f"{head} {own}.", source)
    return [
        replace(one, excerpt=own) for one in found if one.value in own and _is_same_slot(one, guessed[-1])
    ]


def _short_answers(question: str, text: str, reader: StatementReader, source: Source) -> list[Candidate]:
    answer = short_answer(question, text, reader.book)
    if answer is None or reader.book.anchor.search(answer.text):
        return []
    if answer.ask.say:
        said = reader.read(f"{answer.ask.say} {answer.text}.", source)
        return [replace(one, excerpt=text[:EXCERPT_CHARS]) for one in said]
    cased = source.cased and not answer.text.islower()
    values = reader.values(answer.text, answer.ask.kind, cased=cased, many=answer.ask.many)
    return [reader.assign(answer.ask.slot, value, text, source, topic=answer.topic) for value in values]


def _with_new_value(base: str, old: str, new: str, *, cased: bool) -> str:
    head = base[: base.rindex(old)]
    is_name = cased and old[0].isupper() and not new[0].isdigit()
    return f"{head}{new[0].upper()}{new[1:]}" if is_name else f"{head}{new}"


def _is_alike(one: str, other: str) -> bool:
    """Tell whether two values begin alike: both with a capital, or both with a digit."""
    return (one[0].isupper(), one[0].isdigit()) == (other[0].isupper(), other[0].isdigit())


def _is_same_slot(one: Candidate, other: Candidate) -> bool:
    return (one.key, one.about, one.qualifier) == (other.key, other.about, other.qualifier)


def _forgets(target: Forgotten, text: str, source: Source) -> Candidate:
    of = f"of {target.about}" if target.about != SELF else ""
    what = " ".join(filter(None, (target.qualifier, target.slot.replace("_", " "), of)))
    return Candidate(
        category="fact",
        key=target.slot,
        value=EVERYTHING,
        about=target.about,
        qualifier=target.qualifier,
        stance=Stance.FORGETS,
        content=f"User asked to forget {'everything' if target.slot == EVERYTHING else what}.",
        confidence=0.9,
        importance=5.0,
        said_at=source.message.sent_at,
        message_ids=source.ids,
        excerpt=text[:EXCERPT_CHARS],
        method=Method.RULES,
        reasoning="the user asks to forget",
    )


def _covers(request: Candidate, said: Candidate) -> bool:
    """Tell whether ``request`` asks to forget what ``said`` says."""
    if said.stance is Stance.FORGETS:
        return False
    if request.key == EVERYTHING:
        return True
    is_all = request.value == EVERYTHING
    return _is_same_slot(request, said) and (is_all or normalise(request.value) == normalise(said.value))


def _own_head(text: str, book: Rulebook) -> str:
    """Cut ``text`` where a request to write or play something begins: what follows is not about the user."""
    match = book.modality["_to_be_written"].search(text)
    if match is None:
        return text
    about_me = book.modality.get("_of_the_writer")
    end = _SENTENCE_END.search(text, match.end())
    if about_me is not None and end is not None and about_me.search(match.group()):
        return f"{text[: match.start()].rstrip()}.{text[end.end() :]}"
    return text[: match.start()]


def _is_fiction(text: str, book: Rulebook, *, in_fiction: bool) -> bool:
    if in_fiction:
        return not book.modality["_fiction_ends"].search(text)
    return bool(book.modality["_fiction_begins"].search(text))


def _is_cased(text: str) -> bool:
    """Tell whether the user writes with capitals, so that a small letter means something."""
    words: Sequence[str] = _WORD.findall(text)
    capital = sum(word[0].isupper() for word in words)
    if _SAYS_I.search(text):
        return True
    starts = len(_START.findall(text))
    return capital > 0 and (
        capital >= _CAPITAL_STARTS * starts or capital > _CAPITAL_WORDS * max(1, len(words))
    )


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
