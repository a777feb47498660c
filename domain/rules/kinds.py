"""Kinds of values: whether words are a place, a person, a job and so on, and which of them belong."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from domain.rules.rulebook import Rulebook

_ITEM: Final = re.compile(r"\s*[,\u3001]\s*")
_MEASURE: Final = re.compile(
    r"\d{1,3}(?:[.,]\d{1,2})?\s?"
    r"(?:cm|m|kg|kgs|kilos?|lbs?|pounds?|stone|ft|feet|foot|inches|in|'\s?\d{0,2}\"?)?(?:\s?\d{1,2}\"?)?",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,4}")
_PHONE: Final = re.compile(r"\+?\d(?:[ ()/.-]{0,2}\d){6,14}")
_DATE: Final = re.compile(
    r"(?:[^\W\d_]{3,12}\.?,? )?\d{1,2}(?:st|nd|rd|th|\.)?(?:[ /.-]{1,2}(?:of |de )?[^\W_]{1,10}\.?)?"
    r"(?:,?[ /.-]{1,2}\d{2,4})?|[^\W\d_]{3,12}",
    re.IGNORECASE,
)
_DAY_AND_MONTH: Final = re.compile(r"\d{1,2}[./-]\d{1,2}")
_LONG_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SAYS_SOMETHING: Final = re.compile(r"\w|[\U0001F300-\U0001FAFF]")
_AGE: Final = re.compile(r"(\d{1,3})(?![\w%]|[.,/:'-]\d)")
_AGES: Final = re.compile(r"\d{1,2}(?:(?:,? and|,| &)? ?\d{1,2}){0,7}(?!\d)")
_COUNT: Final = re.compile(r"\d{1,4}(?!\d)")
_NO_PLACE_NAME: Final = re.compile(
    r"(?:an?|my|our|the(?! (?:us|usa|uk|netherlands|philippines|states|united|bahamas|bronx))|one|this|"
    r"some)\b"
)
_OLDEST: Final = 120
_PLACE_LINKS: Final = frozenset({
    "de", "la", "of", "the", "upon", "am", "an", "sur", "der", "del", "los", "las", "le", "les", "und",
    "and", "di", "da", "do", "dos",
})  # fmt: skip
_NAME_LINKS: Final = frozenset({
    "de", "van", "von", "der", "la", "di", "da", "bin", "al",
})  # fmt: skip
_ORG_LINKS: Final = frozenset({
    "of", "and", "the", "for", "de", "&", "del", "la",
})  # fmt: skip
_TITLE_LINKS: Final = frozenset({
    "of", "the", "and", "in", "to", "a", "for", "on", "de", "la", "le",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a kind needs to know: the words of the language, and whether a small letter means something."""

    book: Rulebook
    cased: bool

    def is_bad_start(self, text: str) -> bool:
        """Tell whether ``text`` begins as no value begins."""
        return bool(self.book.value["bad_start"].match(text))

    def is_one_of(self, text: str, lexicon: str) -> bool:
        """Tell whether the last words of ``text`` are in ``lexicon``."""
        words = text.casefold().split()
        known = self.book.lexicon.get(lexicon, frozenset())
        if any(" ".join(words[start:]) in known for start in range(len(words))):
            return True
        return bool(words) and words[-1].removesuffix("s") in known

    def proper(self, text: str, links: frozenset[str], most: int) -> str | None:
        """Return the run of capitalised words at the head of ``text``."""
        run: list[str] = []
        for word in text.split():
            if not (word[0].isupper() or (run and word.casefold() in links)):
                break
            run.append(word)
        while run and run[-1].strip(",").casefold() in links:
            run.pop()
        return " ".join(run).strip(" ,") if 0 < len(run) <= most else None

    def without_article(self, text: str) -> str:
        """Drop an article or preposition that is no part of a name."""
        return self.book.value["the"].sub("", text)

    def first_known(self, text: str, lexicon: str) -> str | None:
        """Return the words up to the first one that ``lexicon`` knows."""
        words = text.split()[:4]
        known = self.book.lexicon.get(lexicon, frozenset())
        for start in range(len(words)):
            for end in range(len(words), start, -1):
                if " ".join(words[start:end]).casefold() in known:
                    return " ".join(words[:end])
        return None

    def number_word(self, text: str) -> str | None:
        """Return the first word of ``text`` when it is a number."""
        word = text.split(maxsplit=1)[0]
        return word if word.casefold() in self.book.lexicon.get("number_words", frozenset()) else None

    def long_head(self, text: str) -> str:
        """Cut ``text`` where a value of many words ends."""
        stop = self.book.value["long_stop"].search(text)
        return text[: stop.start()] if stop else text


def _first_item(text: str) -> str:
    return _ITEM.split(text, maxsplit=1)[0]


def _phrase(reading: Reading, text: str) -> str | None:
    limit = 9 if reading.book.spaced else 3
    fits = 1 <= len(text.split()) <= limit and not reading.is_bad_start(text)
    return text if fits and _SAYS_SOMETHING.search(text) else None


def _word(reading: Reading, text: str) -> str | None:
    return text if len(text.split()) <= 2 and _phrase(reading, text) else None  # noqa: PLR2004 - "full time"


def _long(reading: Reading, text: str) -> str | None:
    return text if 1 <= len(text.split()) <= 14 and not reading.is_bad_start(text) else None  # noqa: PLR2004


def _place(reading: Reading, text: str) -> str | None:
    text = reading.without_article(text)
    if _first_item(text).casefold() in reading.book.lexicon.get("not_place", frozenset()):
        return None
    if not reading.book.spaced:
        return _phrase(reading, text)
    return reading.proper(text, _PLACE_LINKS, 6) if reading.cased else _lower_place(reading, text)


def _lower_place(reading: Reading, text: str) -> str | None:
    stop = reading.book.value["place_stop"].search(text)
    text = (text[: stop.start()] if stop else text).strip(" ,")
    if _NO_PLACE_NAME.match(text):
        return None
    parts = _ITEM.split(text)
    has_region = len(parts) > 1 and len(parts[1].split()) <= 2  # noqa: PLR2004 - "portland, oregon"
    head = ", ".join(parts[:2]) if has_region else parts[0]
    return head if 1 <= len(head.split()) <= 4 and not reading.is_bad_start(head) else None  # noqa: PLR2004


def _place_strict(reading: Reading, text: str) -> str | None:
    """Return a place that little announces: capitalised, or known."""
    if reading.cased and reading.book.spaced:
        return _place(reading, text) if text[0].isupper() or text.startswith("the ") else None
    words = reading.without_article(text).casefold().split()
    known = reading.book.lexicon.get("places", frozenset())
    return next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in known), None)


def _person(reading: Reading, text: str) -> str | None:
    if not reading.book.spaced:
        return text if 1 <= len(text) <= 6 else None  # noqa: PLR2004 - characters of a Chinese or Japanese name
    text = _first_item(text)
    if reading.cased and text[:1].isupper():
        name = reading.proper(text, _NAME_LINKS, 4)
        return name if name and not reading.is_one_of(name, "not_name") else None
    words = text.split()
    if not 1 <= len(words) <= 2 or reading.is_one_of(words[0], "not_name") or not words[0].isalpha():  # noqa: PLR2004
        return None
    return text


def _person_strict(reading: Reading, text: str) -> str | None:
    """Return a name that nothing announces: it must be capitalised and be no word of the language."""
    text = _first_item(text)
    if not reading.cased or not text[:1].isupper():
        return None
    name = reading.proper(text, _NAME_LINKS, 3)
    if not name or name != text or any(reading.is_one_of(word, "not_name") for word in name.split()):
        return None
    return name


def _job(reading: Reading, text: str) -> str | None:
    words = _first_item(text).split()
    if reading.is_bad_start(text):
        return None
    heads = (" ".join(words[:end]) for end in range(min(len(words), 6), 0, -1))
    return next((head for head in heads if _is_job(reading, head)), None)


def _is_job(reading: Reading, text: str) -> bool:
    if reading.is_one_of(text, "not_job"):
        return False
    suffix = reading.book.value.get("job_suffix")
    # Together, so that "crane operator" ends like "typewriter operator" and like "webdeveloper".
    together = "".join(text.casefold().split())
    return reading.is_one_of(text, "jobs") or bool(suffix and suffix.search(together))


def _job_said(reading: Reading, text: str) -> str | None:
    """Return what follows "work as": any short noun phrase."""
    job = _job(reading, text)
    words = _first_item(text).split()
    if job or reading.is_one_of(text, "not_job") or reading.is_bad_start(text):
        return job
    return " ".join(words) if 1 <= len(words) <= 4 else None  # noqa: PLR2004 - a noun phrase


def _age(reading: Reading, text: str) -> str | None:
    match = _AGE.match(text)
    if match and 1 <= int(match[1]) <= _OLDEST:
        return match[1]
    return reading.number_word(text)


def _number(reading: Reading, text: str) -> str | None:
    match = _COUNT.match(text)
    return match.group() if match else reading.number_word(text)


def _measure(_: Reading, text: str) -> str | None:
    match = _MEASURE.match(text)
    return match.group().strip() if match else None


def _email(_: Reading, text: str) -> str | None:
    match = _EMAIL.search(text)
    return match.group() if match else None


def _phone(_: Reading, text: str) -> str | None:
    match = _PHONE.search(text)
    return match.group() if match else None


def _date(reading: Reading, text: str) -> str | None:
    match = _DATE.match(reading.without_article(text))
    if not match:
        return None
    word = _LONG_WORD.search(match.group())
    months = reading.book.lexicon.get("months", frozenset())
    is_date = _DAY_AND_MONTH.search(match.group()) or (word and word.group().casefold() in months)
    return match.group().strip() if is_date else None


def _language(reading: Reading, text: str) -> str | None:
    known = reading.book.lexicon.get("languages", frozenset())
    return next(
        (word for word in _first_item(text).split()[:3] if word.casefold().strip(".,") in known), None
    )


def _address(_: Reading, text: str) -> str | None:
    is_address = any(char.isdigit() for char in text) and _LONG_WORD.search(text)
    return text if is_address and len(text) <= 120 else None  # noqa: PLR2004 - longer than any address


def _org(reading: Reading, text: str) -> str | None:
    text = _first_item(text)
    proper = reading.proper(text, _ORG_LINKS, 6) if reading.cased else None
    if proper:
        return proper
    return text if 1 <= len(text.split()) <= 5 and not reading.is_bad_start(text) else None  # noqa: PLR2004


def _ages(_: Reading, text: str) -> str | None:
    match = _AGES.match(text)
    return match.group() if match else None


def _title(reading: Reading, text: str) -> str | None:
    return reading.proper(text, _TITLE_LINKS, 9) if reading.cased else None


def _instrument(reading: Reading, text: str) -> str | None:
    return reading.first_known(text, "instruments")


def _sport(reading: Reading, text: str) -> str | None:
    return reading.first_known(text, "sports")


def _pet(reading: Reading, text: str) -> str | None:
    words = text.split()
    for index, word in enumerate(words[:4]):
        if word.casefold().strip(".,") in reading.book.animals:
            return " ".join(words[: index + 1])
    return None


def _names(reading: Reading, text: str) -> str | None:
    """Return a name of a list of names: each is capitalised and nothing more."""
    return _person_strict(reading, text) if len(text.split()) <= 2 else None  # noqa: PLR2004 - "Sir Toby"


def _known(lexicon: str) -> Callable[[Reading, str], str | None]:
    """Return the kind of the words that end in one of ``lexicon``: "an old van"."""

    def read(reading: Reading, text: str) -> str | None:
        words = _first_item(text).split()[:5]
        heads = (" ".join(words[:end]) for end in range(len(words), 0, -1))
        return next((head for head in heads if reading.is_one_of(head, lexicon)), None)

    return read


KINDS: Final[Mapping[str, Callable[[Reading, str], str | None]]] = {
    "phrase": _phrase, "activity": _phrase, "word": _word, "long": _long, "title": _title,
    "place": _place, "place_strict": _place_strict, "person": _person, "person_strict": _person_strict,
    "org": _org, "job": _job, "job_said": _job_said, "address": _address,
    "age": _age, "ages": _ages, "number": _number, "count": _number, "measure": _measure, "date": _date,
    "email": _email, "phone": _phone, "language": _language,
    "names": _names, "marital": _known("marital"), "vehicle": _known("vehicles"),
    "property": _known("property"),
    "pet": _pet, "pet_named": _pet, "instrument": _instrument, "sport": _sport,
}  # fmt: skip
