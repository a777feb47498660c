"""Build the text that goes into a prompt (docs/architecture/injection.md)."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Protocol
from uuid import UUID

from domain.gather_context import GatherContext
from domain.injection import (
    IncludedFact,
    Injection,
    InjectionMode,
    InjectionRequest,
    RankedFact,
    RankedRead,
)
from domain.prompt_text import FOOTER, HEADER, fact_line
from domain.search_memory import SearchRequest
from domain.stores import Reads

CHARS_PER_TOKEN: Final = 4
_MOST_RELEVANT: Final = 10
_SHORTEST_LINE: Final = len("- [fact] abc: x\n")


class SeenFacts(Protocol):
    """Takes note of facts that were put into a prompt; never blocks and never fails."""

    def note(self, user_id: UUID, fact_ids: Collection[UUID]) -> None:
        """Remember that ``fact_ids`` were just shown."""
        ...


class BuildInjection:
    """Answer an injection request: by rank from one indexed read, or by what is relevant to a question."""

    def __init__(self, *, reads: Reads, context: GatherContext, seen: SeenFacts, char_budget: int) -> None:
        self._reads = reads
        self._context = context
        self._seen = seen
        self._char_budget = char_budget

    async def __call__(self, request: InjectionRequest) -> Injection:
        """Return the text for ``request`` and what it was made of; a user never seen gets an empty one.

        Raises:
            StorageUnavailableError: the database did not answer; the engine carries on without memory.
        """
        budget = self._budget(request)
        read = await self._read(request, budget)
        chosen, text = pack(read.facts, budget)
        if chosen and read.user_id is not None:
            self._seen.note(read.user_id, [fact.fact_id for fact in chosen])
        return Injection(
            text=text,
            facts_count=len(chosen),
            included=tuple(
                IncludedFact(
                    fact_id=one.fact_id,
                    score=one.confidence if one.score is None else one.score,
                    reason=one.reason,
                )
                for one in chosen
            ),
            omitted={"budget": len(read.facts) - len(chosen)} if len(chosen) < len(read.facts) else {},
            pending=read.pending,
            tokens_estimate=-(-len(text) // CHARS_PER_TOKEN),
            fingerprint=fingerprint(text),
            as_of=request.as_of,
        )

    async def _read(self, request: InjectionRequest, budget: int) -> RankedRead:
        if request.mode is InjectionMode.RELEVANT:
            gathered = await self._context(
                SearchRequest(
                    tenant_id=request.tenant_id,
                    user=request.user,
                    avatar_id=request.avatar_id,
                    query=request.query or "",
                    limit=_MOST_RELEVANT,
                    as_of=request.as_of,
                )
            )
            return RankedRead(
                user_id=gathered.user_id, facts=tuple(gathered.ranked()), pending=gathered.pending
            )
        return await self._reads.ranked(
            request.tenant_id,
            request.user,
            request.avatar_id,
            limit=max(budget // _SHORTEST_LINE, 1),
            as_of=request.as_of,
        )

    def _budget(self, request: InjectionRequest) -> int:
        if request.token_budget is not None:
            return request.token_budget * CHARS_PER_TOKEN
        return self._char_budget if request.char_budget is None else request.char_budget


def pack(facts: Sequence[RankedFact], budget: int) -> tuple[Sequence[RankedFact], str]:
    """Return the first of ``facts`` that fit ``budget`` characters, and the text with header and footer.

    Packing stops at the first line that does not fit. Without facts the text is empty; with facts of which
    none fits it is header and footer.
    """
    if not facts:
        return (), ""
    left = budget - len(HEADER) - len(FOOTER)
    lines: list[str] = []
    for fact in facts:
        line = fact_line(fact.category, fact.fact_key, fact.value)
        if len(line) > left:
            break
        left -= len(line)
        lines.append(line)
    return facts[: len(lines)], _framed(lines)


def _framed(lines: Iterable[str]) -> str:
    return f"{HEADER}{''.join(lines)}{FOOTER}"


def fingerprint(text: str) -> str:
    """Name a text, so that an engine can tell whether its prompt changed; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
