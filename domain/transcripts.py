"""A plain transcript as turns, where it says who speaks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.conversation import ASSISTANT_ROLES, USER_ROLES

_USER: Final = "user"
_ASSISTANT: Final = "assistant"

_LABEL: Final = re.compile(
    r"^[ \t]*(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?[\])]?[ \t-]{1,4})?"
    r"[#*_\[( ]{0,5}(?P<label>[^\W\d_][\w .'-]{0,39}?)(?: ?\([^()\n]{1,30}\))?[\])*_]{0,3}[ \t]*"
    r"[:\uff1a][*_]{0,2}[ \t]*(?P<text>.*)$"
)
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_USER_LABELS: Final = USER_ROLES | {
    "customer", "client", "caller", "me", "you said", "nutzer", "nutzerin", "benutzer", "anwender",
    "kunde", "kundin", "ich", "utilisateur", "utilisatrice", "moi", "usuario", "usuaria", "cliente",
    "yo", "usuário", "utente", "gebruiker", "kullan\u0131c\u0131", "użytkownik", "пользователь",
    "користувач", "用户", "使用者", "我", "ユーザー", "사용자",
}  # fmt: skip
_ASSISTANT_LABELS: Final = ASSISTANT_ROLES | {
    "agent", "operator", "support", "chatbot", "chatgpt", "chatgpt said", "gpt", "claude", "gemini",
    "copilot", "assistent", "assistentin", "ki", "ia", "asistente", "assistente", "ассистент",
    "асистент", "помощник", "助手", "助理", "アシスタント", "어시스턴트",
}  # fmt: skip
_OTHER_LABELS: Final = frozenset({"system", "developer", "tool", "function"})
# Whoever "you" is, it is not the other one.
_YOU: Final = "you"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one speaker said without a break; ``role`` is folded where the label is a known one."""

    role: str
    content: str


def turns_of(transcript: str) -> tuple[Turn, ...]:
    """Split ``transcript`` at lines that begin with the label of a speaker.

    A label is a known word ("User", "Assistant", "Kundin"), or the one name that speaks with an assistant.
    Without any, the whole is one turn of the user. Other words before a colon ("Note:") are part of what was
    said, and so is all that stands in a code block.
    """
    lines = list(_labelled(transcript))
    roles = _roles([label for label, _, _ in lines if label])
    turns: list[tuple[str, list[str]]] = []
    for label, said, line in lines:
        role = roles.get(label)
        if role is not None:
            turns.append((role, [said]))
        elif turns:
            turns[-1][1].append(line)
        elif line.strip():
            turns.append((_USER, [line]))
    joined = ((role, "\n".join(parts).strip()) for role, parts in turns)
    return tuple(Turn(role=role, content=content) for role, content in joined if content)


def _labelled(transcript: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line with what may be its label, empty for none, and what stands behind that."""
    is_code = False
    for line in transcript.split("\n"):
        match = None if is_code else _LABEL.match(line)
        said = match["text"] if match else line
        if _FENCE.match(said):
            is_code = not is_code
        yield (match["label"].strip().casefold() if match else ""), said, line


def _roles(labels: Sequence[str]) -> Mapping[str, str]:
    """Return the role of each label that names a speaker; other labels are no speakers."""
    seen = dict.fromkeys(labels)
    roles = {label: _known(label) for label in seen if _known(label)}
    given = set(roles.values())
    if _YOU in seen and given & {_USER, _ASSISTANT}:
        roles[_YOU] = _USER if _USER not in given else _ASSISTANT
    elif _ASSISTANT in given and _USER not in given:
        name = _only_name(labels, roles)
        if name:
            roles[name] = _USER
    return roles


def _known(label: str) -> str:
    if label in _USER_LABELS:
        return _USER
    if label in _ASSISTANT_LABELS:
        return _ASSISTANT
    return label if label in _OTHER_LABELS else ""


def _only_name(labels: Sequence[str], roles: Mapping[str, str]) -> str:
    """Return the name that takes turns with the assistant, when there is only one."""
    unknown = {label for label in labels if label not in roles}
    return unknown.pop() if len(unknown) == 1 and labels[0] in unknown else ""
