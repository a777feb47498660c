"""What is said in some slots, with vectors: what a judge may be asked about, read without a lock."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, LiteralString
from uuid import UUID

from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.jobs import JobOrder
from domain.judging import KnownClaims, Vectors
from domain.memory.assertions import Authority, Claim, Scope
from domain.memory.sentences import claim_sentence
from domain.memory.slots import Slot, slot_from_text, slot_text
from domain.memory.stances import Mode
from storage.commit_writes import text_id
from storage.pool import Database

# More values of one slot than these are not compared, the last said first: a budget of time.
_MOST_A_SLOT: Final = 200

_READ_KNOWN: Final[LiteralString] = """
    SELECT t.slot, c.norm, c.stances,
           ARRAY(SELECT j.left_claim || ' ' || j.right_claim
                   FROM lis.judgements AS j
                  WHERE j.user_id = %(user_id)s AND j.tenant_id = %(tenant_id)s
                    AND j.avatar_id = %(avatar_id)s AND j.left_slot = t.slot
                    AND j.authority >= %(authority)s) AS answered
      FROM unnest(%(slots)s::text[]) AS t (slot)
      LEFT JOIN LATERAL (
            SELECT a.norm, array_agg(DISTINCT a.stance) AS stances
              FROM lis.assertions AS a
              LEFT JOIN lis.sessions AS s
                ON s.tenant_id = a.tenant_id AND s.user_id = a.user_id AND s.session_id = a.session_id
             WHERE a.user_id = %(user_id)s
               AND a.tenant_id = %(tenant_id)s
               AND a.avatar_id = %(avatar_id)s
               AND a.slot = t.slot
               AND a.stance <> 'forgets'
               AND a.session_id IS DISTINCT FROM %(beside)s::uuid
               AND a.generation = coalesce(s.serving_generation, a.generation)
             GROUP BY a.norm
             ORDER BY max(a.said_at) DESC, a.norm
             LIMIT %(most)s) AS c ON true
"""

_READ_SESSION: Final[LiteralString] = """
    SELECT DISTINCT a.slot, a.norm, ARRAY[a.stance] AS stances
      FROM lis.assertions AS a
      JOIN lis.sessions AS s
        ON s.tenant_id = a.tenant_id AND s.user_id = a.user_id AND s.session_id = a.session_id
     WHERE a.user_id = %(user_id)s
       AND a.tenant_id = %(tenant_id)s
       AND a.avatar_id = %(avatar_id)s
       AND a.session_id = %(session_id)s
       AND a.stance <> 'forgets'
       AND a.generation = s.serving_generation
"""

_READ_VECTORS: Final[LiteralString] = """
    SELECT DISTINCT ON (v.text_id) v.text_id, v.embedding
      FROM lis.text_vectors AS v
     WHERE v.user_id = %(user_id)s
       AND v.tenant_id = %(tenant_id)s
       AND v.avatar_id = %(avatar_id)s
       AND v.text_id = ANY (%(text_ids)s::uuid[])
     ORDER BY v.text_id, v.model
"""

_MODE: Final = {"denies": Mode.DENIES, "plans": Mode.PLANS}

Row = Mapping[str, Any]


async def known_claims(
    database: Database, scope: Scope, slots: Collection[Slot], *, beside: UUID | None
) -> KnownClaims:
    """Return the claims of ``slots`` with their vectors, and the pairs that a model or a person judged."""
    params = {
        **_owner(scope),
        "slots": sorted(map(slot_text, slots)),
        "authority": Authority.MODEL.value,
        "beside": beside,
        "most": _MOST_A_SLOT,
    }
    async with database.connection() as conn:
        rows = await _fetched(conn, _READ_KNOWN, params)
        claims = _claims(row for row in rows if row["norm"] is not None)
        vectors = await _vectors(conn, scope, claims)
    answered = {frozenset(map(UUID, pair.split())) for row in rows for pair in row["answered"]}
    return KnownClaims(vectors=vectors, answered=frozenset(answered))


async def claims_of_session(database: Database, order: JobOrder) -> Vectors:
    """Return the claims of the session of ``order``, as it is served, with their vectors."""
    scope = order.scope
    async with database.connection() as conn:
        rows = await _fetched(conn, _READ_SESSION, {**_owner(scope), "session_id": order.session_id})
        return await _vectors(conn, scope, _claims(rows))


async def _vectors(conn: AsyncConnection, scope: Scope, claims: Collection[Claim]) -> Vectors:
    ids = {claim: text_id(claim_sentence(claim)) for claim in claims}
    if not ids:
        return {}
    params = {**_owner(scope), "text_ids": sorted(set(ids.values()))}
    stored = {
        row["text_id"]: _little_endian(row["embedding"])
        for row in await _fetched(conn, _READ_VECTORS, params)
    }
    return {claim: stored.get(one) for claim, one in ids.items()}


async def _fetched(
    conn: AsyncConnection, statement: LiteralString, params: Mapping[str, object]
) -> list[Row]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, params)
        return list(await cursor.fetchall())


def _claims(rows: Iterable[Row]) -> set[Claim]:
    return {
        Claim(slot_from_text(row["slot"]), row["norm"], _MODE.get(stance, Mode.HOLDS))
        for row in rows
        for stance in row["stances"]
    }


def _little_endian(vector: HalfVector) -> bytes:
    """Return what ``half_vector`` was given."""
    return vector.to_numpy().astype("<f2").tobytes()


def _owner(scope: Scope) -> Mapping[str, object]:
    return {"user_id": UUID(scope.user), "tenant_id": scope.tenant, "avatar_id": UUID(scope.avatar)}
