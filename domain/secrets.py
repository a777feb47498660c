"""Secrets and identity numbers: replaced by a mark that no value may contain, before anything is stored."""

import re
from collections.abc import Callable
from typing import Final

MARK: Final = "\u25ae"

_BOUND: Final = r"(?<![A-Za-z0-9])"
_END: Final = r"(?![A-Za-z0-9])"

_KEYWORD: Final = (
    r"(?:pass ?(?:word|wort|phrase|code)|passwd|pwd|kennwort|mot de passe|contrase\u00f1a|clave|\u5bc6\u7801|"
    r"\u53e3\u4ee4|\u30d1\u30b9\u30ef\u30fc\u30c9|pin(?: code)?|puk|otp|cvv2?|cvc|api[ _-]?key|"
    r"(?:client|api|app|shared) secret|secret[ _-]?key|access[ _-]?key|"
    r"(?:access |auth |bearer |refresh )?token|private key|seed phrase|recovery (?:code|phrase)|"
    r"security (?:code|answer)|2fa(?: code)?|one[- ]time code|login code)"
)
_FOR: Final = r"(?: (?:for|of|to|on|at|f\u00fcr|zum|de|pour|para|del?) [^.!?\n:=]{1,40}?)?"
_IS: Final = (
    r"(?:\s*(?:[:=\uff1a]|\u662f|\u4e3a|\u306f)\s*|"
    r"(?:'s|\s+(?:is now|is still|is|was|to(?! (?:the|an?|my|be|get|log|sign|use)\b)|ist|lautet|est|es|as)|"
    r", it'?s|, it is)(?:\s*:)?\s+)"
)
# What is said about a secret instead of saying it.
_ABOUT_IT: Final = (
    r"(?!(?:not|too|so|very|really|also|being|wrong|incorrect|invalid|expired|required|needed|missing|easy|hard|"
    r"weak|strong|secure|safe|important|what|where|how|why)(?![\w-]))"
)
_QUOTED: Final = r"\"[^\"\n]{3,80}\"|'[^'\n]{3,80}'"
_JOINT: Final = r"(?:and|but|so|which|please|for|on|und|et|y|pero|mais|aber|while|because|can|could)"

# "the password for the router is a b c": all words up to a pause belong to it.
_STATED: Final = re.compile(
    rf"(?<![a-z])(?:{_KEYWORD}|pw|pass(?=\s*[:=])|(?:my|the|door|gate|alarm|access|entry|lock|safe) code)"
    rf"{_FOR}{_IS}{_ABOUT_IT}"
    rf"(?P<value>{_QUOTED}|[^\s,;\u3002\uff0c]{{3,200}}(?: (?!{_JOINT}\b)[^\s,.;!?]{{1,40}}){{0,7}})",
    re.IGNORECASE,
)
# "password Xy12": what follows must look unlike a word of prose.
_FOLLOWED: Final = re.compile(
    rf"(?<![a-z])(?:{_KEYWORD})\s+"
    rf"(?P<value>{_QUOTED}|(?=\S*[\d&$%#@!?_+*^~])[^\s,;\u3002\uff0c]{{3,200}})",
    re.IGNORECASE,
)
_SEED_PHRASE: Final = re.compile(
    r"(?:seed|recovery|backup) phrase(?: is|:)?\s+((?:[a-z]{3,8}\s+){8,23}[a-z]{3,8})", re.IGNORECASE
)
_SHAPES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN [A-Z ]{3,40}-----(?:[^-]|-(?!-)){0,10000}(?:-----END [A-Z ]{3,40}-----)?",
        r"[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{0,80}:[^\s/@]{1,120}@\S{1,200}",
        _BOUND + r"(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,200}",
        _BOUND + r"(?:sk|pk|rk)[-_](?:live|test)[-_][A-Za-z0-9]{6,200}",
        _BOUND + r"(?:gh[pousr]|github_pat|glpat|xox[abprs]|hf|npm|pypi|dop_v1|shpat|"
        r"ya29)[-_.][A-Za-z0-9_.-]{10,250}",
        _BOUND + r"(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,20}" + _END,
        _BOUND + r"AIza[A-Za-z0-9_-]{30,40}",
        _BOUND + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        _BOUND + r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,2000}(?:\.[A-Za-z0-9_-]{0,2000})?",
        r"(?i:bearer)\s+[A-Za-z0-9._~+/=-]{16,2000}",
        r"(?i:basic)\s+(?=[A-Za-z0-9+/]{0,200}[0-9=])[A-Za-z0-9+/=]{16,2000}",
        _BOUND + r"[0-9a-fA-F]{32,128}" + _END,
        _BOUND + r"\d{3}-\d{2}-\d{4}" + _END,
    )
)
_LONG_RUN: Final = re.compile(r"[A-Za-z0-9+/_=-]{40,}")
_RUN_PART: Final = re.compile(r"[A-Za-z0-9]+")
_ID_NUMBER: Final = re.compile(
    r"(?<![A-Za-z])(?:(?i:ssn|social security(?: number)?|passport|driv(?:er'?s?|ing) licen[cs]e|licen[cs]e|"
    r"tax (?:id|number)|national id|id (?:card|number)|insurance (?:id|number)|account(?: number| no\.?)?|"
    r"iban|"
    r"sort code|routing(?: number)?|steuer-?id|ausweis(?:nummer)?|reisepass(?:nummer)?)|TIN|DNI|NIE|NIF|"
    r"\u8eab\u4efd\u8bc1(?:\u53f7)?|\u62a4\u7167|\u30de\u30a4\u30ca\u30f3\u30d0\u30fc)(?![A-Za-z])"
    r"(?i:\s*(?:number|no\.?|nummer|num\u00e9ro|n\u00famero|nr\.?|#|is|ist|est|es|:|\uff1a|\u662f|\u306f)){0,3}\s*"
    r"((?=[A-Z0-9 ./-]{0,20}\d)[A-Z0-9](?:[ ./-]?[A-Z0-9]){4,24})"
)
_CARD: Final = re.compile(r"(?<![0-9+])[0-9](?:[ -]?[0-9]){12,18}(?![0-9])")
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_EXPIRY: Final = re.compile(
    r"\b(?:exp(?:\.|iry|ires)?(?: date)?|valid (?:until|thru))[ :]{0,3}\d{2}\s?/\s?\d{2,4}", re.IGNORECASE
)
_NOT_DIGIT: Final = re.compile(r"\D")
_SHORTEST_IBAN: Final = 15
_LONGEST_IBAN: Final = 34
_LEAST_RUN_PART: Final = 20


def redact(text: str) -> str:
    """Replace secrets, card and account numbers and identity numbers in ``text`` by the mark."""
    for shape in _SHAPES:
        text = shape.sub(MARK, text)
    text = _LONG_RUN.sub(_if(_is_random), text)
    text = _SEED_PHRASE.sub(MARK, text)
    text = _IBAN.sub(_without_iban, text)
    text = _CARD.sub(_if(lambda found: passes_luhn(_NOT_DIGIT.sub("", found))), text)
    text = _EXPIRY.sub(MARK, text)
    text = _ID_NUMBER.sub(MARK, text)
    return _FOLLOWED.sub(_without_value, _STATED.sub(_without_value, text))


def holds_secret(text: str) -> bool:
    """Tell whether ``text`` holds a secret, or the mark of one that was there."""
    return MARK in text or redact(text) != text


def passes_luhn(digits: str) -> bool:
    """Tell whether ``digits`` carry a valid Luhn check digit."""
    total = sum(sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    return total % 10 == 0


def is_iban(text: str) -> bool:
    """Tell whether ``text`` is an IBAN by its remainder."""
    packed = text.replace(" ", "")
    turned = packed[4:] + packed[:4]
    is_long = _SHORTEST_IBAN <= len(packed) <= _LONGEST_IBAN
    return is_long and int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _is_random(run: str) -> bool:
    """Tell a key from a rule of dashes, a path or words joined by hyphens."""
    longest = max(_RUN_PART.findall(run), key=len, default="")
    is_mixed = any(char.isdigit() for char in longest) or not (longest.islower() or longest.isupper())
    return len(longest) >= _LEAST_RUN_PART and is_mixed and not longest.isdigit()


def _if(check: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    return lambda match: MARK if check(match.group()) else match.group()


def _without_value(match: re.Match[str]) -> str:
    return f"{match.group()[: match.start('value') - match.start()]}{MARK}"


def _without_iban(match: re.Match[str]) -> str:
    text = match.group()
    for end in range(len(text), _SHORTEST_IBAN - 1, -1):
        if is_iban(text[:end].rstrip()):
            return MARK + text[end:]
    return text
