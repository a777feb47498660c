"""Whose words: what the user says themself, after quotations, pastes and markup are cut out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.rules.pasted import foreign_lines
from domain.rules.profiles import Particular, particulars
from domain.secrets import MARK

_FENCE: Final = re.compile(r"(?:```|~~~)[\s\S]*?(?:```|~~~|\Z)")
_INLINE_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_PLAIN_WORD: Final = re.compile(r"[\w.+#-]{1,30}")
_DROPPED_ELEMENT: Final = re.compile(
    r"<(script|style|head|svg|pre|code|memory|memories|user_memory|relevant_memories|context|system|document|"
    r"tool_result|function_results|email|quote|blockquote)\b[^>]{0,200}>[\s\S]*?(?:</\1\s*>|\Z)",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_HTML_PAGE: Final = re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE)
_MEMORY_BLOCK: Final = re.compile(
    r"(?im)^(?:#{1,4} *(?:user memory|memories|memory|known facts|context)\b|"
    r"(?:relevant |user )?memor(?:y|ies)(?: about the user)?:)[^\n]*\n"
    r"(?:[^\n]+\n?|\n(?=[-*]))*"
)
_TO_THE_END: Final = re.compile(
    r"(?im)^(?:-{3,} ?(?:forwarded|original|weitergeleitete|urspr\u00fcngliche|"
    r"message (?:transf\u00e9r\u00e9|d'origine))|begin forwarded message|"
    r"on [^\n]{5,120} wrote:|am [^\n]{5,120} schrieb[^\n]{0,80}:|"
    r"le [^\n]{5,120} a \u00e9crit ?:|el [^\n]{5,120} escribi\u00f3:|"
    r"(?:from|von|de): [^\n]{2,120}\n"
    r"(?:(?:to|sent|date|cc|subject|an|gesendet|betreff|\u00e0|objet|para|asunto): ?[^\n]*\n?)+|"
    r"(?:system|assistant|developer|tool|function|ai|chatgpt|claude|gemini|model)(?: message)? ?: |"
    r"<\|[a-z_]{3,20}\|>|\[/?inst\]|#{2,3} ?(?:instruction|response|system))[\s\S]*"
)
# A greeting line with a sign-off below it is a letter; a greeting alone is a person being polite.
_GREETING: Final = re.compile(
    r"(?im)^(?:dear|hi|hello|hey|lieber?|sehr geehrter?|hallo|cher|ch\u00e8re|bonjour|querid[oa]|estimad[oa])"
    r" [^\n]{1,40}[,:!]?[ ]*$"
)
_SIGN_OFF: Final = re.compile(
    r"(?im)^(?:(?:kind |best |warm |many )?(?:regards|wishes)|best,|cheers,|sincerely|yours|thanks,|love,|"
    r"xoxo|"
    r"mit freundlichen|viele gr\u00fc\u00dfe|liebe gr\u00fc\u00dfe|cordialement|bien \u00e0 vous|saludos|"
    r"atentamente)"
    r"[^\n]{0,60}\n?[^\n]{0,60}"
)
_LABELLED: Final = re.compile(r"^\s*\[([^\]\n]{1,40})\]:? +(.*)$")
_PASTE_CUE: Final = re.compile(
    r"(?i)\b(?:translate|rewrite|rephrase|paraphrase|proof-?read|summari[sz]e|correct|fix|edit|improve|polish|"
    r"shorten|review|check|grade|"
    r"\u00fcbersetze?n?|korrigiere?n?|verbessere?n?|zusammenfassen|traduis|tradui[rs]ez?|corrige[rz]?|"
    r"r\u00e9sume[rz]?|traduce|traducir|corregir|resume|"
    r"(?:make|turn) (?:this|it|my)|here(?:'s| is| are) (?:the|a|an|my|what|some)|what does (?:this|"
    r"it) (?:say|mean)|"
    r"analy[sz]e|parse|explain|format|decode|convert|respond to|reply to|answer this|"
    r"hier ist|voici|aqu\u00ed est\u00e1)\b[^\n:]{0,100}:\s*"
)
_EDIT_CUE: Final = re.compile(
    r"(?i)\b(?:translate|rewrite|rephrase|paraphrase|proof-?read|summari[sz]e|correct|improve|polish|shorten|"
    r"\u00fcbersetze?n?|korrigiere?n?|traduis|traduisez|corrige[rz]?|traduce|resume)\s+"
    r"(?:this|that|it|these|the following|my (?:text|e-?mail|letter|essay|message|bio|cv|resume|"
    r"cover letter|post|paragraph)|das|dies|diesen text|ceci|ce texte|esto|"
    r"este texto)\b[^.?!:\n]{0,60}[.?!:\n]\s*"
)
_QUOTED_SPAN: Final = re.compile(
    r"\"([^\"\n]{1,600})\"|\u201c([^\u201d\n]{1,600})\u201d|\u00ab([^\u00bb\n]{1,600})\u00bb|"
    r"\u201e([^\u201c\u201d\n]{1,600})[\u201c\u201d]|"
    r"\u300c([^\u300d\n]{1,600})\u300d|(?<![\w])'((?:[^'\n]|'(?=\w)){8,400})'(?!\w)"
)
_SPEAKS: Final = re.compile(
    r"(?i)\b(?:i|i'm|i've|my|me|we|our|you|ich|mein\w*|wir|je|j'\w+|mon|ma|mes|nous|yo|mi|mis|soy|estoy|tengo)\b|"
    r"[\u6211\u79c1\u50d5\u4ffa]"
)
_QUOTE_LEAD: Final = re.compile(
    r"(?i)(?:\b(?:said|says|say|saying|wrote|writes|write|told|asked|replied|texted|yelled|shouted|goes|"
    r"was like|"
    r"start with|begin with|sagte|schrieb|meinte|dit|\u00e9crit|dijo|escribi\u00f3)\b[^.!?\n]{0,30}|:)\s*$"
)
_GOES_ON: Final = re.compile(r"(?:i|i'm|i've|my)\b")
_LEAST_PASTED: Final = 12
_TITLE_WORDS: Final = 8
_LEAD_CHARS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Words of one sender; ``speaker`` is set where a chat bridge names who speaks."""

    text: str
    speaker: str | None = None
    profile: Sequence[Particular] = ()


def own_words(text: str) -> list[Passage]:
    """Return what the sender says in ``text``, by speaker where a chat bridge labels every line."""
    labelled = _labelled_lines(text)
    if labelled:
        return labelled
    if _HTML_PAGE.search(text):
        return []
    profile, rest = particulars(text)
    own = _mask_quotes(_joined(_own_lines(_without_blocks(rest).split("\n"))))
    return [Passage(text=own, profile=profile)]


def _without_blocks(text: str) -> str:
    text = _FENCE.sub("\n", text)
    text = _MEMORY_BLOCK.sub("\n", text)
    text = _DROPPED_ELEMENT.sub("\n", text)
    text = _INLINE_CODE.sub(lambda code: code[1] if _PLAIN_WORD.fullmatch(code[1]) else MARK, text)
    text = _TAG.sub(" ", text)
    text = _without_letter(_TO_THE_END.sub("\n", text))
    cue = _PASTE_CUE.search(text) or _EDIT_CUE.search(text)
    return text[: cue.start()] if cue and len(text) - cue.end() > _LEAST_PASTED else text


def _without_letter(text: str) -> str:
    greeting = _GREETING.search(text)
    closings = list(_SIGN_OFF.finditer(text, greeting.end())) if greeting else []
    return f"{text[: greeting.start()]}\n{text[closings[-1].end() :]}" if greeting and closings else text


def _labelled_lines(text: str) -> list[Passage]:
    lines = [line for line in text.split("\n") if line.strip()]
    found = [_LABELLED.match(line) for line in lines]
    if len(lines) < 2 or not all(found):  # noqa: PLR2004 - one labelled line is no chat
        return []
    return [Passage(text=match[2], speaker=match[1]) for match in found if match]


def _own_lines(lines: Sequence[str]) -> list[str]:
    foreign = foreign_lines(lines)
    return ["" if index in foreign else line for index, line in enumerate(lines)]


def _joined(lines: Sequence[str]) -> str:
    """Join a hard-wrapped line to the one before; keep the other line ends as borders."""
    out: list[list[str]] = []
    for line in (line.strip() for line in lines):
        if line and out and _continues(out[-1][-1], line):
            out[-1].append(line)
        else:
            out.append([line])
    return "\n".join(" ".join(parts) for parts in out)


def _continues(before: str, line: str) -> bool:
    if not before or before[-1] in ".!?:;\u3002\uff01\uff1f":
        return False
    return line[0].islower() and not _GOES_ON.match(line)


def _mask_quotes(text: str) -> str:
    return _QUOTED_SPAN.sub(lambda match: _quote(match, text), text)


def _quote(match: re.Match[str], text: str) -> str:
    inner = next(group for group in match.groups() if group is not None)
    is_led = _QUOTE_LEAD.search(text[max(0, match.start() - _LEAD_CHARS) : match.start()])
    if _SPEAKS.search(inner) or len(inner.split()) > _TITLE_WORDS or is_led:
        return f" {MARK}{'.' if inner.rstrip()[-1:] in ('.', '!', '?') else ''} "
    return inner
