"""Search over the recallable rows of one scope."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from domain.conversation import UserRef
from domain.gather_context import CoreRead
from domain.memory.facts import FactRow
from domain.named_periods import Period
from domain.search_memory import Findings, FoundFact, Question
from storage.commit_writes import half_vector
from storage.fact_rows import fact_from_row
from storage.pool import Database
from storage.reads import pending_of, person
from storage.search_sql import CORE_AS_OF, CORE_NOW, KNOWN_WORDS, SLOTS, search_statement

_WIDEST_INDEXED = 768
_BYTES_A_NUMBER = 2
_BESIDE = frozenset({"found", "score", "cos", "person_id", "pending"})


class PostgresSearches:
    """``domain.search_memory.SearchesFacts``; give it the pool of the reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, question: Question) -> Findings:
        """Return the best facts for ``question`` by one statement, without a cut-off."""
        slots = next(size for size in SLOTS if size >= len(question.words))
        is_wide = question.vector is not None and len(question.vector) > _WIDEST_INDEXED * _BYTES_A_NUMBER
        statement = search_statement(
            slots,
            as_of=question.as_of is not None,
            narrow=not is_wide,
            categories=bool(question.categories),
            topics=bool(question.topics),
        )
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, _params(question, slots))
            rows = await cursor.fetchall()
        return Findings(
            facts=tuple(_found(row) for row in rows if row["fact_id"] is not None),
            frequencies=tuple(rows[0]["found"][: len(question.words)]) if rows else (),
        )

    async def core(
        self, tenant_id: str, user: UserRef, avatar_id: UUID, *, limit: int, as_of: datetime | None
    ) -> CoreRead:
        """Return the important and certain facts of a scope, the most important first."""
        params = {**person(tenant_id, user), "avatar_id": avatar_id, "limit": limit, "as_of": as_of}
        async with self._database.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(CORE_NOW if as_of is None else CORE_AS_OF, params)
            rows = await cursor.fetchall()
        first = rows[0]
        return CoreRead(
            user_id=first["person_id"],
            facts=tuple(_fact(row) for row in rows if row["fact_id"] is not None),
            pending=pending_of(first["pending"]),
        )

    async def known_words(self, question: Question, *, shortest: int, longest: int) -> Collection[str]:
        """Return the words of the scope's facts that are so many characters long, 20,000 at most."""
        params = {**_scope(question), "shortest": shortest, "longest": longest}
        async with self._database.connection() as conn:
            cursor = await conn.execute(KNOWN_WORDS, params)
            return [row[0] for row in await cursor.fetchall()]


def _params(question: Question, slots: int) -> Mapping[str, Any]:
    words = [_quoted(word) for word in question.words]
    return {
        **_scope(question),
        **{f"t{n}": words[n - 1] if n <= len(words) else None for n in range(1, slots + 1)},
        "words": " | ".join(words),
        "vector": half_vector(question.vector) if question.vector is not None else None,
        "periods": "{" + ",".join(map(_range, question.periods)) + "}",
        "share": question.share,
        "categories": sorted(question.categories),
        "topics": sorted(question.topics),
        "as_of": question.as_of,
        "limit": question.limit,
    }


def _scope(question: Question) -> dict[str, Any]:
    return {**person(question.tenant_id, question.user), "avatar_id": question.avatar_id}


def _quoted(word: str) -> str:
    """Write ``word`` as one lexeme of a tsquery, whatever is in it."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _range(period: Period) -> str:
    return f"[{period[0].isoformat()},{period[1].isoformat()})"


def _found(row: Mapping[str, Any]) -> FoundFact:
    return FoundFact(fact=_fact(row), score=row["score"], likeness=row["cos"] or 0.0)


def _fact(row: Mapping[str, Any]) -> FactRow:
    return fact_from_row({name: value for name, value in row.items() if name not in _BESIDE})
