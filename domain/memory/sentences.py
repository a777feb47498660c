"""One sentence for a value of a slot, made from the vocabulary alone."""

from typing import Final

from domain.memory.assertions import Claim
from domain.memory.slots import SELF, Slot
from domain.memory.stances import Mode, Stance
from domain.memory.values import EVERYTHING
from domain.memory.vocabulary import Arity, SlotType, builtin_vocabulary

_STANCE: Final = {Mode.HOLDS: Stance.HOLDS, Mode.DENIES: Stance.DENIES, Mode.PLANS: Stance.PLANS}
_WORDS: Final = {Stance.DENIES: "not {}", Stance.PLANS: "plans {}", Stance.HELD: "formerly {}"}


def sentence_of(slot: Slot, value: str, stance: Stance = Stance.HOLDS) -> str:
    """Say ``value`` of ``slot`` in a sentence; without a template, the words of the key and the value."""
    found = builtin_vocabulary().described(slot.key)
    template = _template(found[0], slot, stance) if found is not None and value != EVERYTHING else ""
    if found is None or not template:
        return _plain(slot, value, stance)
    shown = template.format(
        value=value,
        subject=_subject(slot),
        qualifier=slot.qualifier or "postal",
        topic=found[1].replace("_", " "),
    )
    return " ".join(shown.split())


def claim_sentence(claim: Claim) -> str:
    """Return the text that is embedded for ``claim``; the day of a dated event is left out of it."""
    norm, slot = claim.norm, claim.slot
    found = builtin_vocabulary().slots.get(slot.key)
    if found is not None and found.arity is Arity.EVENT:
        norm = norm.rpartition(" @ ")[0] or norm
    return sentence_of(slot, norm, _STANCE[claim.mode])


def _template(kind: SlotType, slot: Slot, stance: Stance) -> str:
    if slot.about != SELF:
        return kind.relative_sentence if stance is Stance.HOLDS else ""
    match stance:
        case Stance.HOLDS:
            return kind.sentence
        case Stance.HELD:
            return kind.past_sentence
        case Stance.PLANS:
            return kind.plan_sentence
        case _:
            return kind.denial_sentence


def _plain(slot: Slot, value: str, stance: Stance) -> str:
    about = f"{_subject(slot)}: " if slot.about != SELF else ""
    qualifier = f"{slot.qualifier} " if slot.qualifier else ""
    said = "everything" if value == EVERYTHING else value
    return f"{about}{qualifier}{slot.key.replace('_', ' ')}: {_WORDS.get(stance, '{}').replace('{}', said)}"


def _subject(slot: Slot) -> str:
    """Return ``sister Ana`` for ``sister/ana``."""
    relation, _, name = slot.about.partition("/")
    return " ".join(filter(None, (relation.replace("_", " "), name.title())))
