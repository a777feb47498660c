"""The sentence of a candidate: the rule file's own words, else the vocabulary's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from domain.memory.stances import Stance
from domain.memory.vocabulary import SlotType

_ASIDE: Final = {
    Stance.HELD: "In the past: {sentence}",
    Stance.DENIES: "Not so: {sentence}",
    Stance.PLANS: "Planned: {sentence}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What may stand in a sentence; ``about_somebody`` when it is about a person in the user's life."""

    value: str
    subject: str = "user"
    relation: str = ""
    topic: str = ""
    qualifier: str = ""
    said: str = ""
    about_somebody: bool = False

    def places(self) -> dict[str, str]:
        """Return the words by the name of their place."""
        return {
            "value": self.value,
            "subject": self.subject,
            "relation": self.relation,
            "topic": self.topic,
            "qualifier": self.qualifier,
            "said": self.said,
        }


def sentence_of(kind: SlotType, stance: Stance, words: Words, contents: Mapping[str, str]) -> str:
    """Return the sentence that says ``words`` in the slot ``kind``, by ``contents`` where it has one."""
    own = contents.get(f"{'about.' if words.about_somebody else ''}{kind.key}{_suffix(stance)}")
    if own is not None:
        return own.format(**words.places())
    special = _special(kind, stance, words)
    plain = (kind.relative_sentence if words.about_somebody else "") or kind.sentence
    sentence = (special or plain).format(**words.places())
    aside = _ASIDE.get(stance)
    return sentence if special or aside is None else aside.format(sentence=sentence)


def _suffix(stance: Stance) -> str:
    return "" if stance is Stance.HOLDS else f".{stance}"


def _special(kind: SlotType, stance: Stance, words: Words) -> str:
    if words.about_somebody:
        return ""
    return {
        Stance.HELD: kind.past_sentence,
        Stance.DENIES: kind.denial_sentence,
        Stance.PLANS: kind.plan_sentence,
    }.get(stance, "")
