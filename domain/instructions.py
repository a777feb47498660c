"""What tells a model what to do is no fact; how the user wants answers is one, in its own slots."""

import re
from typing import Final

# The slots in which a wish about answers is a fact.
_ANSWER_SLOTS: Final = frozenset({"response_style", "preferred_language", "nickname", "pronouns", "name"})

_FOREIGN_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|overlook)\s+"
    r"(?:(?:all|any|the|your|my|these|those|every|of)\s+){0,3}"
    r"(?:(?:previous|prior|above|earlier|preceding|system|safety|existing)\s+){0,2}"
    r"(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?|directions?)\b|"
    r"\b(?:ignoriere?n?|vergiss)\s+(?:\w+\s+){0,3}(?:anweisungen|regeln|vorgaben)\b|"
    r"\b(?:ignore[rz]?|oublie[rz]?)\s+(?:\w+\s+){0,3}(?:instructions|consignes|r\u00e8gles)\b|"
    r"\b(?:ignora|olvida)\s+(?:\w+\s+){0,3}(?:instrucciones|reglas)\b|"
    r"\u5ffd\u7565[^\n]{0,12}(?:\u6307\u4ee4|\u6307\u793a|\u89c4\u5219)|\u6307\u793a\u3092\u7121\u8996|"
    r"\b(?:system|developer) prompt\b|\byou are now\b|\bdeveloper mode\b|\bjailbr(?:eak|oken)\b|"
    r"\bdo anything now\b|"
    r"\b(?:reveal|print|output|leak|exfiltrate|show) (?:\w+ ){0,3}(?:prompt|instructions|secrets?|"
    r"passwords?|keys?)\b|"
    r"\b(?:the )?(?:assistant|model|ai|chatbot) (?:must|should|shall|has to|will) (?:now |always |"
    r"never )?\w+|"
    r"<\|[a-z_]{3,20}\|>|\[/?inst\]",
    re.IGNORECASE,
)
_STANDING_ORDER: Final = re.compile(
    r"\b(?:from now on|henceforth|whenever|every time)\b[^.!?\n]{0,80}"
    r"\b(?:you (?:must|should|will|are|have to)|send|forward|reveal|respond|reply|answer|output|print|"
    r"execute|obey|"
    r"say|tell|transmit|post|upload|email|call|transfer)\b|"
    r"\byou (?:must|shall) (?:now|always|never)\b|"
    r"\b(?:send|forward|transmit|upload|post|transfer) [^.!?\n]{0,60}"
    r"\bto (?:https?://|\S{1,60}@|this (?:address|url|account|number))",
    re.IGNORECASE,
)


def is_instruction(key: str, *texts: str) -> bool:
    """Tell whether one of ``texts``, of a statement under ``key``, tells a model what to do."""
    if any(_FOREIGN_ORDER.search(text) for text in texts):
        return True
    return key not in _ANSWER_SLOTS and any(_STANDING_ORDER.search(text) for text in texts)
