"""Score retrieval on stored beliefs with questions: ``python -m benchmarks.retrieval FOLDER``.

``FOLDER`` has ``beliefs.seed.json`` and ``retrieval.cases.json``. Beliefs go in as ``fact.store`` does, and
what is relevant is read as ``context.get`` does, on a PostgreSQL of its own and without a broker. A belief
that was superseded is deleted again; one that is pinned is core, and so never among the relevant ones.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from clients.embeddings.local import LocalEmbedder
from clients.stemming import SnowballStemmer
from domain.command_facts import CommandFacts, CommandRef, FactGiven
from domain.conversation import NIL_AVATAR, UserRef
from domain.errors import EmbedderUnavailableError, InvalidInputError
from domain.gather_context import GatherContext
from domain.memory.assertions import RetractionKind
from domain.memory.timeline import Rules
from domain.ports import Embedder, EmbedderInfo
from domain.recall_tokens import RecallTokenizer
from domain.search_memory import SearchMemory, SearchRequest
from producers.dead_letters import DeadLetterEncoder
from producers.encoding import Encoder
from schemas.topics import Topics
from service.wiring import SystemClock
from storage.fact_commands import PostgresFactCommands
from storage.migrate import migrate
from storage.outgoing import Outgoing
from storage.pool import open_database
from storage.searches import PostgresSearches
from tests.support.postgres import running_postgres
from tests.support.surroundings import read_surroundings

_TENANT: Final = "bench"
_UNIVERSAL: Final = "user:universal"
_CORE: Final = 9.0
_ORDINARY: Final = 5.0
_CATEGORY: Final = {
    "preference": "preference",
    "entity": "context",
    "decision": "fact",
    "relation": "context",
}
_SAID_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class NoEmbedder:
    """An embedder that is away: words find alone."""

    def __init__(self, info: EmbedderInfo) -> None:
        self.info = info

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Answer nothing."""
        raise EmbedderUnavailableError(f"{len(texts)} texts are not embedded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the cases that have an answer, and how many of all found exactly what they should."""

    precision: float
    recall: float
    answered_exactly: int
    with_answer: int
    left_empty: int
    without_answer: int

    def line(self, name: str) -> str:
        """Return the score as one line."""
        return (
            f"{name:<8} precision {self.precision:.3f}, recall {self.recall:.3f}, "
            f"exact {self.answered_exactly} of {self.with_answer}, "
            f"left empty {self.left_empty} of {self.without_answer}"
        )


async def stored(commands: CommandFacts, belief: Mapping[str, Any]) -> UUID | None:
    """Store ``belief`` and return the id of its fact; None where the service refuses it."""
    ref = CommandRef(
        command_id=uuid5(NAMESPACE_URL, belief["_id"]),
        kind="fact.store",
        tenant_id=_TENANT,
        user=UserRef(external_user_id=belief["user_id"]),
        avatar_id=NIL_AVATAR,
        at=_SAID_AT,
    )
    given = FactGiven(
        category=_CATEGORY.get(belief["type"], "fact"),
        fact_key=belief["canonical_name"],
        fact_value=belief["content"][:200],
        content=belief["content"],
        aliases=tuple(belief["aliases"]),
        topics=tuple(one for one in belief["scope"] if one != _UNIVERSAL),
        confidence=max(belief["confidence"], 0.8) if belief["pinned"] else belief["confidence"],
        importance=_CORE if belief["pinned"] else _ORDINARY,
        said_at=_SAID_AT,
    )
    try:
        applied = await commands.store(ref, given)
    except InvalidInputError as error:
        print(f"refused: {belief['_id']}: {error}", file=sys.stderr)
        return None
    if applied.fact is not None and belief["epistemic_status"] == "superseded":
        gone = CommandRef(
            command_id=uuid5(NAMESPACE_URL, f"{belief['_id']} gone"),
            kind="fact.delete",
            tenant_id=_TENANT,
            user=ref.user,
            avatar_id=NIL_AVATAR,
            at=_SAID_AT,
        )
        await commands.delete(gone, applied.fact.fact_id, kind=RetractionKind.FORGET)
    return applied.fact.fact_id if applied.fact is not None else None


async def scored(
    context: GatherContext, cases: Sequence[Mapping[str, Any]], names: Mapping[UUID, str], *, verbose: bool
) -> Score:
    """Ask every case that says what may come back, and compare."""
    precisions, recalls, exact, empty, without = [], [], 0, 0, 0
    for case in cases:
        wanted = case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
        if wanted is None or not case["query"].strip():
            continue
        topics = frozenset(one for one in case["scope"] if one != _UNIVERSAL)
        gathered = await context(
            SearchRequest(
                tenant_id=_TENANT,
                user=UserRef(external_user_id=case.get("userId", "test-user")),
                avatar_id=NIL_AVATAR,
                query=case["query"],
                topics=topics,
                limit=10,
            )
        )
        found = [names.get(one.fact.fact_id, "?") for one in gathered.relevant]
        if verbose and set(found) != set(wanted):
            scores = [round(one.score, 2) for one in gathered.relevant]
            print(f"{case['caseId']}: {case['query'][:70]!r}\n  wanted {wanted}\n  found {found} {scores}")
        if wanted:
            right = len(set(found) & set(wanted))
            precisions.append(right / len(found) if found else 0.0)
            recalls.append(right / len(wanted))
            exact += set(found) == set(wanted)
        else:
            without += 1
            empty += not found
    return Score(
        precision=mean(precisions),
        recall=mean(recalls),
        answered_exactly=exact,
        with_answer=len(precisions),
        left_empty=empty,
        without_answer=without,
    )


async def measure(folder: Path, url: str, *, verbose: bool) -> None:
    """Store the beliefs once and ask by words alone, then by words and vectors."""
    beliefs = json.loads((folder / "beliefs.seed.json").read_text(encoding="utf-8"))
    cases = json.loads((folder / "retrieval.cases.json").read_text(encoding="utf-8"))
    await migrate(url)
    tokenizer = RecallTokenizer(stemmer=SnowballStemmer())
    topics = Topics("")
    outgoing = Outgoing(encode=Encoder(topics, "bench"), encode_dead_letter=DeadLetterEncoder(topics))
    embedder = LocalEmbedder()
    await embedder.start()
    try:
        async with open_database(url, max_size=2) as database:
            commands = CommandFacts(
                commands=PostgresFactCommands(
                    database, outgoing=outgoing, tokenizer=tokenizer, rules=Rules()
                ),
                embedder=embedder,
            )
            names = {await stored(commands, one): one["_id"] for one in beliefs}
            known = {fact_id: name for fact_id, name in names.items() if fact_id is not None}
            facts = PostgresSearches(database)
            ways: dict[str, Embedder] = {"words": NoEmbedder(embedder.info), "both": embedder}
            for name, way in ways.items():
                search = SearchMemory(facts=facts, embedder=way, tokenizer=tokenizer, clock=SystemClock())
                context = GatherContext(core=facts, search=search)
                score = await scored(context, cases, known, verbose=verbose and name == "both")
                print(score.line(name))
    finally:
        await embedder.aclose()


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder of beliefs and cases")
    parser.add_argument("--verbose", action="store_true", help="print the cases that found something else")
    arguments = parser.parse_args()
    with running_postgres(read_surroundings()) as server:
        url = server.create_database()
        asyncio.run(measure(arguments.folder, url, verbose=arguments.verbose))


if __name__ == "__main__":
    main()
