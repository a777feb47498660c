"""Special categories of data protection law, which a tenant must allow by name.

Allergies, diets and accessibility needs are kept: people are hurt without them.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from domain.memory.vocabulary import SlotType


class SpecialCategory(StrEnum):
    """What is kept only where it is allowed."""

    RELIGION = "religion"
    POLITICAL_VIEWS = "political_views"
    ETHNIC_ORIGIN = "ethnic_origin"
    SEXUAL_ORIENTATION = "sexual_orientation"
    TRADE_UNION = "trade_union"
    DIAGNOSES = "diagnoses"
    MEDICATION = "medication"
    CRIMINAL_RECORD = "criminal_record"
    OTHER_HEALTH = "other_health"


_BY_SLOT: Final[Mapping[str, SpecialCategory]] = {
    "religion": SpecialCategory.RELIGION,
    "worldview": SpecialCategory.POLITICAL_VIEWS,
    "sexual_orientation": SpecialCategory.SEXUAL_ORIENTATION,
    "health_conditions": SpecialCategory.DIAGNOSES,
    "medication": SpecialCategory.MEDICATION,
}
_KEPT_SLOTS: Final = frozenset({"allergy", "intolerances", "diet", "avoids_food", "avoids_drink"})
# Slots whose values are names or words that only look like a belief or an illness.
_NAMES: Final = frozenset(
    {
        "name",
        "nickname",
        "surname",
        "work_name",
        "partner",
        "manager",
        "pet_name",
        "employer",
        "school",
        "reading",
    }
)
_KEPT_WORDS: Final = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|c(?:o?e)liac|gluten|lactose|nut-free|epi-?pen|anaphyla\w+|wheelchair|deaf|blind|"
    r"hard of hearing|hearing (?:aids?|loss|impair\w+)|low vision|visually impaired|colou?r ?blind\w*|"
    r"dyslexi\w+|"
    r"mobility|crutches|walking (?:stick|frame)|accessib\w+|screen reader|sign language)\b",
    re.IGNORECASE,
)
_KEYS: Final[Mapping[SpecialCategory, re.Pattern[str]]] = {
    category: re.compile(rf"(?:^|_)(?:{words})(?:_|$)")
    for category, words in {
        SpecialCategory.RELIGION: r"religio\w*|faith|church|is_(?:muslim|christian|jewish|hindu|catholic)",
        SpecialCategory.POLITICAL_VIEWS: r"politic\w*|party_membership|votes?(?:_for)?|voted",
        SpecialCategory.ETHNIC_ORIGIN: r"ethnic\w*|race|racial\w*|skin_colou?r",
        SpecialCategory.SEXUAL_ORIENTATION: r"sexual\w*|sex_life",
        SpecialCategory.TRADE_UNION: r"(?:trade|labou?r)_union\w*|union_member\w*",
        SpecialCategory.DIAGNOSES: r"diagnos\w*|illness\w*|disease\w*|mental_health|disorder\w*|hiv\w*",
        SpecialCategory.MEDICATION: r"medication\w*|medicines?|prescription\w*|treatment",
        SpecialCategory.CRIMINAL_RECORD: r"criminal\w*|conviction\w*|arrest\w*|prison\w*",
    }.items()
}
_SAYINGS: Final[Mapping[SpecialCategory, re.Pattern[str]]] = {
    category: re.compile(words, re.IGNORECASE)
    for category, words in {
        SpecialCategory.RELIGION: (
            r"\b(?:is|am|are|as) (?:an? )?(?:\w+ )?(?:christian|catholic|protestant|muslim|jewish|jew|"
            r"buddhist|hindu|"
            r"sikh|atheist|agnostic|mormon|baptist|lutheran|quaker|jehovah's witness)\b|"
            r"\b(?:converted to|practi[cs]es) (?:islam|christianity|judaism|buddhism|hinduism)\b|"
            r"\bbeliev\w+ in (?:a )?god\b"
        ),
        SpecialCategory.POLITICAL_VIEWS: (
            r"\b(?:vot(?:es?|ed|ing) (?:for|against)|supports? the \w+ party|member of the \w+ party|"
            r"(?:is|am) (?:an? )?(?:\w+ )?(?:republican|democrat|socialist|communist|libertarian|"
            r"anarchist))\b"
        ),
        SpecialCategory.ETHNIC_ORIGIN: (
            r"\b(?:ethnic(?:ally|ity)|of \w+ (?:descent|ethnicity)|african[- ]american|mixed[- ]race|"
            r"biracial)\b"
        ),
        SpecialCategory.SEXUAL_ORIENTATION: (
            r"\b(?:is|am|as) (?:an? )?(?:openly )?(?:gay|lesbian|bisexual|homosexual|heterosexual|asexual|"
            r"pansexual)\b"
        ),
        SpecialCategory.TRADE_UNION: (
            r"\b(?:(?:trade|labou?r) union|union (?:member|rep(?:resentative)?)|shop steward)\b"
        ),
        SpecialCategory.DIAGNOSES: (
            r"\b(?:diagnos(?:ed|is)|suffer(?:s|ing)? from|has (?:cancer|diabetes|hiv|epilepsy|depression|"
            r"asthma|adhd|"
            r"bipolar disorder|schizophrenia|parkinson's|dementia)|(?:is|am) (?:diabetic|epileptic|"
            r"bipolar|hiv[- ]positive))\b"
        ),
        SpecialCategory.MEDICATION: (
            r"\b(?:tak(?:es?|ing)|prescribed|on) (?:\w+ ){0,2}(?:insulin|metformin|antidepressants?|"
            r"lithium|statins?|"
            r"\d+ ?mg|medication|prozac|zoloft|xanax|ritalin|adderall)\b"
        ),
        SpecialCategory.CRIMINAL_RECORD: (
            r"\b(?:criminal record|(?:was|been|got) (?:arrested|convicted|jailed|imprisoned)|convicted of|"
            r"(?:in|out of|from) (?:prison|jail)|on (?:parole|probation))\b"
        ),
    }.items()
}


def special_category(key: str, kind: SlotType | None, *texts: str) -> SpecialCategory | None:
    """Return the special category of what ``texts`` say under ``key``, None for an ordinary statement."""
    if (kind is not None and kind.key in _KEPT_SLOTS) or any(_KEPT_WORDS.search(text) for text in texts):
        return None
    if kind is not None and kind.sensitive:
        return _BY_SLOT.get(kind.key, SpecialCategory.OTHER_HEALTH)
    if kind is not None and kind.key in _NAMES:
        return None
    by_key = next((category for category, words in _KEYS.items() if words.search(key)), None)
    return by_key or next(
        (category for category, words in _SAYINGS.items() if any(words.search(text) for text in texts)), None
    )
