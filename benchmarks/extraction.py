"""Score extraction by rules on labelled conversations: ``python -m benchmarks.extraction CASES``.

The way through the product is the whole one, without a broker and a database: an event is decoded, cut into
windows, read by rules, checked and folded. ``CASES`` is the folder of the checkers, which know their data.
"""

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from clients.language import FastTextLanguageGuesser
from consumers.decoding import decode
from consumers.translation import Translator
from domain.candidates import Candidate
from domain.conversation import SessionText
from domain.memory.assertions import Scope
from domain.memory.evidence import assertions_of
from domain.memory.facts import FactRow, row_of
from domain.memory.fold import fold
from domain.memory.vocabulary import builtin_vocabulary
from domain.outbox import RawRecord
from domain.rules.extractor import RuleExtractor
from domain.validation import Dropped, Policy, check, masked
from domain.windows import windows_of
from schemas import conversation as wire

_SESSION: Final = UUID(int=1)
_SCOPE: Final = Scope(tenant="bench", user=str(UUID(int=2)), avatar=str(UUID(int=0)))
_ENDED_AT: Final = "2026-01-01T00:00:00Z"
# The personas speak in the first person, and are compared word by word.
_FIRST_PERSON: Final = (
    (r"^User's ", "my "),
    (r"^User is ", "i am "),
    (r"^User has ", "i have "),
    (r"^User does not ", "i do not "),
    (r"^User (\w+?)(?:(?<=ch)|(?<=sh))es ", r"i \1 "),
    (r"^User (\w{2,})s ", r"i \1 "),
    (r"^User ", "i "),
)

Transcript = Sequence[object]


class Remembering:
    """What the service remembers of one conversation when rules alone read it."""

    def __init__(self, *, allowed: frozenset[str] = frozenset()) -> None:
        self._extractor = RuleExtractor(vocabulary=builtin_vocabulary(), languages=FastTextLanguageGuesser())
        self._policy = Policy(allowed_categories=allowed)

    def rows(self, transcript: Transcript) -> list[FactRow]:
        """Return the facts that follow from ``transcript``, whatever their status."""
        session = _session(transcript)
        kept = list(self._kept(session))
        said = assertions_of(_SCOPE, session.session_id, "live", kept)
        evidence = {one.assertion_id: one for one in said}
        return [row_of(fact, _SCOPE, evidence) for fact in fold(said).facts.values()]

    def _kept(self, session: SessionText) -> Iterator[Candidate]:
        for window in windows_of(session):
            for candidate in self._extractor.read(window):
                checked = check(candidate, window, self._policy)
                if not isinstance(checked, Dropped):
                    yield checked.candidate


def _session(transcript: Transcript) -> SessionText:
    messages = [_sent(one) for one in transcript if isinstance(one, Mapping)]
    event = {
        "tenant_id": "bench",
        "external_user_id": "somebody",
        "session_id": str(_SESSION),
        "ended_at": _ENDED_AT,
        "messages": messages,
    }
    value = json.dumps(event).encode()
    record = RawRecord(topic="bench", partition=0, offset=0, key=None, value=value, headers=())
    ended = Translator().ended(decode(wire.ConversationEnded, value), record)
    return SessionText(
        session_id=_SESSION,
        ended_at=ended.ended_at,
        messages=masked(ended.messages or ()),
        timezone=ended.timezone,
        language=ended.language,
    )


def _sent(message: Mapping[str, object]) -> Mapping[str, object]:
    """Give the fields of a labelled message the names of the wire."""
    return {
        "role": message.get("role") or "unknown",
        "content": message.get("content"),
        "message_id": message.get("id"),
        "sent_at": message.get("ts"),
        "name": message.get("name"),
    }


def shown(row: FactRow) -> str:
    """Return all that a stored fact exposes."""
    return f"[{row.category}] {row.fact_key}: {row.fact_value} | {row.content}"


def tricky(remembering: Remembering, checker: ModuleType, *, path: Path, is_verbose: bool) -> None:
    """Print the score on transcripts of the tricky kinds."""

    def extract(transcript: Transcript) -> list[Mapping[str, str]]:
        return [{"text": shown(row), "status": row.status} for row in remembering.rows(transcript)]

    rows = checker.load(str(path))
    result = checker.check(rows, extract)
    checker.report(result, verbose=is_verbose)
    if is_verbose:
        _print_wrong(rows, extract, checker)


def _print_wrong(
    rows: Sequence[Mapping[str, Any]],
    extract: Callable[[Transcript], list[Mapping[str, str]]],
    checker: ModuleType,
) -> None:
    for row in rows:
        expected = row["expect"]
        right = [a for fact in expected["facts"] + expected.get("optional", []) for a in checker.alts(fact)]
        for fact in extract(row["messages"]):
            if fact["status"] == "active" and not any(a in checker.norm(fact["text"]) for a in right):
                print("  unexpected", row["id"], ascii(fact["text"]))


def personas(remembering: Remembering, checker: ModuleType, name: str, *, most: int | None) -> None:
    """Print the score on the personas of ``name``: by the facts' sentences, and with what they quote.

    The proxy compares words, and a sheet lists a few of the true statements about a speaker alone.
    """
    cases = checker.LOADERS[name]()[:most]
    known = {
        json.dumps(case["messages"]): [
            row for row in remembering.rows(case["messages"]) if row.status != "superseded"
        ]
        for case in cases
    }

    def sentences(transcript: Transcript) -> list[str]:
        return [_first_person(row.content) for row in known[json.dumps(transcript)]]

    def quoted(transcript: Transcript) -> list[str]:
        return [f"{_first_person(row.content)} {row.source_excerpt}" for row in known[json.dumps(transcript)]]

    checker.evaluate(cases, sentences, f"{name}, sentences")
    checker.evaluate(cases, quoted, f"{name}, with the quotation")


def _first_person(content: str) -> str:
    for pattern, replacement in _FIRST_PERSON:
        content, count = re.subn(pattern, replacement, content)
        if count:
            break
    return content


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Score and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("cases", type=Path, help="the folder of the checkers")
    parser.add_argument("--only", choices=["tricky", "xpersona_en", "xpersona_fr"])
    parser.add_argument("--transcripts", type=Path, help="other transcripts of the tricky form")
    parser.add_argument("--most", type=int, help="read the first conversations of each set only")
    parser.add_argument("--allow", nargs="+", default=[], help="special categories that the tenant allows")
    parser.add_argument("-v", dest="is_verbose", action="store_true", help="list what is wrong")
    wanted = parser.parse_args()
    remembering = Remembering(allowed=frozenset(wanted.allow))
    if wanted.only in (None, "tricky"):
        path = wanted.transcripts or wanted.cases / "tricky_transcripts.jsonl.gz"
        tricky(
            remembering, _module(wanted.cases / "tricky_check.py"), path=path, is_verbose=wanted.is_verbose
        )
    for name in ("xpersona_en", "xpersona_fr"):
        if wanted.only in (None, name):
            personas(remembering, _module(wanted.cases / "extraction_check.py"), name, most=wanted.most)
    return 0


if __name__ == "__main__":
    sys.exit(main())
