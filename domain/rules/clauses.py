"""Sentences and clauses, each clause with the subject it inherits and the moods that hold for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from domain.rules.persons import Persons
from domain.rules.rulebook import Rulebook

_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|no|approx|inc|ltd|dept|ca|bzw|z\.b|d\.h|usw|nr|sr|sra|dra|[a-z])"
    r"|str)\.$",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"\b\d{1,2}\.$")
_MONTH: Final = re.compile(
    r" (?:jan(?:uar)?|feb(?:ruar)?|m\u00e4rz|april?|mai|juni?|juli?|aug(?:ust)?|sep(?:tember)?|okt(?:ober)?|"
    r"nov(?:ember)?|dez(?:ember)?)\b",
    re.IGNORECASE,
)
_END: Final = re.compile(r"(?:[.!?\u2026]+(?:[\"')\]]*)(?=\s|$)|[\u3002\uff01\uff1f!?]+|\n+)")
_SPACED_MARK: Final = re.compile(r"\s+([,.!;?])(?=\s|$)")
EXCERPT_CHARS: Final = 200

_RUN_ON: Final = 300
_MAX_CLAUSE: Final = 400
_MAX_CONTEXT: Final = 400
_MAX_LEADS: Final = 5
_LEAD_MARKS: Final = " ,;:-\u2013\u2014"
_CARRIED: Final = frozenset({"hypothetical", "reported", "instruction", "fiction"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence as said."""

    text: str
    is_question: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause without its lead-in; ``said`` is the piece of the sentence that it was cut from."""

    text: str
    said: str
    sentence: str
    scope: str
    moods: frozenset[str]

    @property
    def context(self) -> str:
        """The words that say how the clause is meant: its sentence, or its piece of a run-on one."""
        return self.sentence if len(self.sentence) <= _MAX_CONTEXT else self.said[:_MAX_CONTEXT]

    @property
    def excerpt(self) -> str:
        """What is quoted as evidence."""
        is_short = len(self.sentence) <= EXCERPT_CHARS
        return (self.sentence if is_short else self.said.strip())[:EXCERPT_CHARS]


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of ``text``; a line end is a border."""
    start = 0
    for match in _END.finditer(text):
        part = text[start : match.end()]
        is_abbreviated = match.group().startswith(".") and not part.endswith("\n")
        if is_abbreviated and (_ABBREVIATION.search(part[-12:]) or _is_day(part, text[match.end() :])):
            continue
        if part.strip():
            is_question = any(mark in match.group() for mark in "?\uff1f")
            yield Sentence(text=part.strip(), is_question=is_question)
        start = match.end()
    if text[start:].strip():
        yield Sentence(text=text[start:].strip(), is_question=False)


def _is_day(part: str, after: str) -> bool:
    """Tell whether ``part`` ends in the day of a date, as German writes it: "3. Mai"."""
    return bool(_DAY.search(part[-4:]) and _MONTH.match(after))


def clauses(sentence: Sentence, book: Rulebook, persons: Persons | None = None) -> list[Clause]:
    """Split ``sentence`` into clauses and mark the moods of each; ``persons`` are those of its turn."""
    pieces = _pieces(sentence.text, book)
    out: list[Clause] = []
    subject, carried = "", frozenset[str]()
    out += _prefaces(sentence, book)
    for index, piece in enumerate(pieces):
        if book.spaced and " " not in piece.strip():
            continue
        text, scope = _without_lead(piece, book)
        text = _respelled(text, book)
        is_first = index == 0 and not persons
        completed, subject = _with_subject(text, subject, book)
        # "is a nurse" is no question where it is somebody that is a nurse.
        moods, carried = _moods(piece if completed == text else completed, carried, book)
        text, subject = _with_person(completed, subject, book, persons)
        if sentence.is_question and index == len(pieces) - 1:
            moods |= {"question"}
        out += [
            Clause(text=part[:_MAX_CLAUSE], said=piece, sentence=sentence.text, scope=where, moods=moods)
            for whole, where in _ungapped(text, scope, book)
            for part in book.fragments.complete(whole, subject, may_lack_subject=is_first)
        ]
    return out


def _prefaces(sentence: Sentence, book: Rulebook) -> list[Clause]:
    """Return what stands before a statement as a statement of its own: "as a nurse I work nights"."""
    found = ((pattern.match(sentence.text), to) for pattern, to in book.prefaces)
    texts = [(match.expand(to), match.group()) for match, to in found if match is not None]
    return [
        Clause(
            text=text[:_MAX_CLAUSE],
            said=said,
            sentence=sentence.text,
            scope="",
            moods=_moods(said, frozenset(), book)[0],
        )
        for text, said in texts
    ]


def _with_subject(text: str, subject: str, book: Rulebook) -> tuple[str, str]:
    """Return ``text`` with the subject it inherits, and the subject that the next clause may inherit."""
    found = book.clause["subject"].match(text) if "subject" in book.clause else None
    if found:
        subject = found.group().strip()
    elif subject and (bare := book.clause["bare_verb"].match(text)):
        text = f"{subject} {'is ' if bare.lastgroup == 'adjective' else ''}{text}"
    if "no_inherit" in book.clause and book.clause["no_inherit"].search(text):
        subject = ""
    return text, subject


def _with_person(text: str, subject: str, book: Rulebook, persons: Persons | None) -> tuple[str, str]:
    """Put the person that is meant in the place of a pronoun, and note who is spoken of."""
    if persons is None or "mention" not in book.clause:
        return text, subject
    found = book.clause["subject"].match(text)
    meant = persons.meant_by(found.group()) if found is not None else None
    if found is not None and meant is not None:
        owner = "'s" if text[found.end() :].lstrip().startswith("name") else ""
        text, subject = f"{meant}{owner}{text[found.end() :]}", meant
    for match in book.clause["mention"].finditer(text):
        persons.see(match["relation"] or match["animal"], match["name"])
    if book.clause["others"].search(text):
        persons.see_somebody()
    return text, subject


def _respelled(text: str, book: Rulebook) -> str:
    """Write short forms out, so that rules need know one spelling only."""
    for pattern, replacement in book.spellings:
        text = pattern.sub(replacement, text)
    return text


def _ungapped(text: str, scope: str, book: Rulebook) -> list[tuple[str, str]]:
    """Repeat subject and verb where a second scope lacks them: "in summer I like tea, in winter cocoa"."""
    match = book.clause["gapped"].fullmatch(text.rstrip(" .!")) if scope and "gapped" in book.clause else None
    if match is None:
        return [(text, scope)]
    return [(match["head"] + match["first"], scope), (match["head"] + match["second"], match["scope"])]


def _pieces(text: str, book: Rulebook) -> list[str]:
    pieces = [piece for piece in _cut(text, book.clause["split"]) if piece.strip(" ,;")]
    if "run_on" not in book.clause:
        return pieces
    return [
        part
        for piece in pieces
        for part in (_cut(piece, book.clause["run_on"]) if len(piece) > _RUN_ON else [piece])
    ]


def _cut(text: str, splitter: re.Pattern[str]) -> list[str]:
    out, start = [], 0
    for match in splitter.finditer(text):
        if match.start() > start:
            out.append(text[start : match.start()])
        groups = match.groupdict()
        start = match.end() if groups.get("drop", "") is not None else match.start()
        if groups.get("keep") is not None:
            start = match.start("keep")
    return [*out, text[start:]]


def _without_lead(piece: str, book: Rulebook) -> tuple[str, str]:
    """Strip what may stand before a statement without changing it; a stripped place or time is its scope."""
    text, scope = _SPACED_MARK.sub(r"\1", piece).strip(f"{_LEAD_MARKS}\"'()"), ""
    for _ in range(_MAX_LEADS):
        lead = book.clause["lead"].match(text)
        if not lead or lead.end() == 0:
            break
        if lead.groupdict().get("scope"):
            scope = lead["scope"].strip(" ,")
        text = text[lead.end() :].lstrip(_LEAD_MARKS)
    return text, scope


def _moods(piece: str, carried: frozenset[str], book: Rulebook) -> tuple[frozenset[str], frozenset[str]]:
    """Return the moods of ``piece``, and those that hold on for the rest of the sentence."""
    ends = book.modality.get("_release")
    if carried and ends and ends.search(piece):
        carried = frozenset()
    found = {
        name for name, pattern in book.modality.items() if not name.startswith("_") and pattern.search(piece)
    }
    moods = carried | found
    return moods, moods & _CARRIED
