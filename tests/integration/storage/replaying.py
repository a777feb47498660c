"""Sessions done again under a label, compared and promoted, on the stores of the storage tests."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from domain.arrivals import EndedConversation, Origin
from domain.candidates import Candidate
from domain.generations import Chosen, CompareGenerations, Progress, PromoteGeneration, ScopeDifference
from domain.jobs import Job, JobOutcome
from domain.memory.fold import DEFAULT
from domain.replays import ReplayMode
from storage.generations import PostgresGenerations
from tests.integration.storage.stores import Stores, extracted, words_of

LABEL = "again-1"


def again(
    conversation: EndedConversation, *, mode: ReplayMode = ReplayMode.SHADOW, label: str = LABEL
) -> EndedConversation:
    """Return ``conversation`` as a replay of the stored sessions sends it: without its messages."""
    return replace(
        conversation,
        messages=None,
        generation=label,
        origin=Origin.REPLAY,
        replay_id=label,
        replay_mode=mode,
    )


def generations(stores: Stores) -> PostgresGenerations:
    return PostgresGenerations(
        stores.database, encode=stores.outgoing.encode, tokenizer=words_of, rules=DEFAULT
    )


async def start(stores: Stores, *, label: str = LABEL, mode: str = "shadow", status: str = "done") -> None:
    await stores.run(
        "INSERT INTO lis.replays (replay_id, generation, mode, status, source) VALUES (%s, %s, %s, %s, '{}')",
        label,
        label if mode != "fill" else "live",
        mode,
        status,
    )


async def redo(stores: Stores, conversation: EndedConversation, *candidates: Candidate) -> Job:
    """Do a replayed conversation; its candidates are those of the label."""
    claim = await stores.claimed(conversation)
    return await stores.jobs().commit(claim, extracted(claim, *candidates), JobOutcome())


def compared(stores: Stores, chosen: Chosen | None = None) -> AsyncIterator[ScopeDifference]:
    return CompareGenerations(store=generations(stores), rules=DEFAULT)(LABEL, chosen or Chosen())


async def promoted(stores: Stores, *, partial: bool = False) -> Progress:
    return await PromoteGeneration(store=generations(stores))(
        LABEL, partial=partial, on_scope=lambda _progress: None
    )


async def memory(stores: Stores) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Everything that a read can see, and everything that was told of facts."""
    return {
        "facts": await stores.rows("SELECT * FROM lis.memory_facts ORDER BY tenant_id, user_id, fact_id"),
        "versions": await stores.rows(
            "SELECT * FROM lis.memory_versions ORDER BY tenant_id, user_id, fact_id, number"
        ),
        "pending": await stores.rows("SELECT * FROM lis.pending_candidates ORDER BY user_id, candidate_id"),
        "clarifications": await stores.rows(
            "SELECT * FROM lis.clarifications ORDER BY user_id, clarification_id"
        ),
        "notes": await stores.rows(
            "SELECT * FROM lis.contradiction_notes ORDER BY user_id, older_fact, newer_fact, note"
        ),
        "scopes": await stores.rows("SELECT * FROM lis.scopes ORDER BY tenant_id, user_id, avatar_id"),
        "recall": await stores.rows("SELECT id, status, content, tsv FROM lis.recall ORDER BY user_id, id"),
        "sessions": await stores.rows("SELECT * FROM lis.sessions ORDER BY tenant_id, session_id"),
        "told": [{"kind": one} for one in await stores.events() if not one.startswith("memory.job.")],
    }
