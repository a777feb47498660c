"""The statement of a search, one pass over a scope (docs/architecture/retrieval.md, "The statement").

The words of a query are slots of the statement, so that a query of three words and one of four are the same
prepared statement. Frequencies, number and mean length are those of the rows of this user alone.
"""

from functools import lru_cache
from typing import Final, LiteralString, cast

from storage.fact_rows import FACT_COLUMNS
from storage.reads import PENDING, PERSON

SLOTS: Final = (4, 8, 16, 32, 64)
"""How many words a statement has room for."""

_RECALL_NOW: Final[LiteralString] = """
          FROM person AS u
          JOIN lis.recall AS r ON r.user_id = u.user_id
         WHERE r.tenant_id = %(tenant_id)s
           AND r.avatar_id = %(avatar_id)s
           AND r.status = 0
           AND r.kind = 0
           AND (r.expires_at IS NULL OR r.expires_at > now())
"""
# What was true then: a row that is past by now may hold it.
_RECALL_AS_OF: Final[LiteralString] = """
          FROM person AS u
          JOIN lis.memory_facts AS f ON f.user_id = u.user_id
          JOIN lis.recall AS r
            ON r.user_id = f.user_id AND r.tenant_id = f.tenant_id AND r.avatar_id = f.avatar_id
           AND r.id = f.fact_id
         WHERE f.tenant_id = %(tenant_id)s
           AND f.avatar_id = %(avatar_id)s
           AND f.status <> 'deleted'
           AND f.merged_into IS NULL
           AND f.mode <> 'plans'
           AND f.valid @> %(as_of)s::timestamptz
           AND (f.expires_at IS NULL OR f.expires_at > %(as_of)s)
"""
_NARROW: Final[LiteralString] = """
           AND NOT r.wide
"""
_OF_CATEGORIES: Final[LiteralString] = """
           AND r.category = ANY (%(categories)s::text[])
"""
# What names no topic belongs to all of them.
_OF_TOPICS: Final[LiteralString] = """
           AND (r.topics = '{}' OR r.topics && %(topics)s::text[])
"""


@lru_cache(maxsize=128)
def search_statement(
    slots: int, *, as_of: bool = False, narrow: bool = True, categories: bool = False, topics: bool = False
) -> LiteralString:
    """Return the statement with ``slots`` words; its parameters are those of ``storage.searches``.

    ``narrow`` says that the embedder's vectors fit the covering index, ``topics`` that some are named.
    """
    words = range(1, slots + 1)
    hits = ", ".join(f"coalesce(tsv @@ %(t{n})s::tsquery, false)::int AS b{n}" for n in words)
    # A slot without a word weighs nothing; one whose word no row has weighs most.
    rarity = ", ".join(
        f"CASE WHEN %(t{n})s::text IS NULL THEN 0 ELSE ln(1 + (n - f{n} + 0.5) / (f{n} + 0.5)) END AS i{n}"
        for n in words
    )
    counted = ", ".join(f"coalesce(sum(b{n}), 0)::int AS f{n}" for n in words)
    found = ", ".join(f"f{n}" for n in words)
    covered = " + ".join(f"b{n} * i{n}" for n in words)
    all_of_it = " + ".join(f"i{n}" for n in words)
    where = (
        (_RECALL_AS_OF if as_of else _RECALL_NOW)
        + (_NARROW if narrow and not as_of else "")
        + (_OF_CATEGORIES if categories else "")
        + (_OF_TOPICS if topics else "")
    )
    statement = f"""{PERSON}, d AS MATERIALIZED (
        SELECT r.id, r.dl,
               CASE WHEN r.tsv @@ %(words)s::tsquery THEN r.tsv END AS tsv,
               greatest(1 - (r.embedding <=> %(vector)s::halfvec), 0) AS cos,
               CASE WHEN %(periods)s::tstzmultirange @> r.valid_from THEN 0.1 ELSE 0 END
               + 0.001 * (coalesce(r.importance, 5) - 5)
               + 0.01 * (coalesce(r.confidence, 0.8) - 0.8) AS prior
        {where}
    ), n AS MATERIALIZED (
        SELECT count(*)::float8 AS n, greatest(sum(dl)::float8 / nullif(count(*), 0), 1) AS mean FROM d
    ), h AS MATERIALIZED (
        SELECT id, cos, prior, 1.9 / (1 + 0.9 * (0.75 + 0.25 * dl / mean)) AS len, {hits}
          FROM d, n
         WHERE tsv IS NOT NULL
    ), c AS (
        SELECT max(n) AS n, {counted}
          FROM n
          LEFT JOIN h ON true
    ), i AS MATERIALIZED (
        SELECT ARRAY[{found}] AS found, {rarity} FROM c
    ), best AS (
        SELECT id, cos,
               (1 - %(share)s::float8) * len * ({covered}) / greatest(1.134328358208955 * ({all_of_it}), 1e-9)
               + %(share)s::float8 * cos + prior AS score
          FROM h, i
         UNION ALL
        (SELECT id, cos, %(share)s::float8 * cos + prior
           FROM d
          WHERE tsv IS NULL
          ORDER BY cos DESC NULLS LAST
          LIMIT 60)
         ORDER BY score DESC
         LIMIT %(limit)s
    )
    SELECT i.found, b.score, b.cos, {FACT_COLUMNS}
      FROM i
      LEFT JOIN (best AS b
                 JOIN lis.memory_facts AS f
                   ON f.user_id = (SELECT user_id FROM person) AND f.tenant_id = %(tenant_id)s
                  AND f.avatar_id = %(avatar_id)s AND f.fact_id = b.id) ON true
     ORDER BY b.score DESC NULLS LAST, f.fact_id
    """  # noqa: S608 - of literals and numbers alone
    statement = " ".join(statement.split())
    return cast("LiteralString", statement)  # type: ignore[redundant-cast, unused-ignore]


KNOWN_WORDS: Final[LiteralString] = (
    PERSON  # noqa: S608 - literals alone
    + """
    SELECT DISTINCT w.lexeme
      FROM person AS u
      JOIN lis.recall AS r ON r.user_id = u.user_id
     CROSS JOIN LATERAL unnest(tsvector_to_array(r.tsv)) AS w (lexeme)
     WHERE r.tenant_id = %(tenant_id)s
       AND r.avatar_id = %(avatar_id)s
       AND r.status = 0
       AND NOT r.wide
       AND r.kind = 0
       AND length(w.lexeme) BETWEEN %(shortest)s AND %(longest)s
     LIMIT 20000
"""
)
"""The words of a scope that may be meant by one that none of its rows has."""

_CORE: Final[LiteralString] = (
    """
    SELECT u.user_id AS person_id,"""  # noqa: S608 - literals alone
    + PENDING
    + ", "
    + FACT_COLUMNS
    + """
      FROM person AS u
      LEFT JOIN core AS f ON true
     ORDER BY f.importance DESC, f.confidence DESC, f.first_said_at, f.fact_id
"""
)
_IS_CORE: Final[LiteralString] = """, core AS (
        SELECT f.*
          FROM person AS u
          JOIN lis.memory_facts AS f ON f.user_id = u.user_id
         WHERE f.tenant_id = %(tenant_id)s
           AND f.avatar_id = %(avatar_id)s
           AND f.importance >= 8
           AND f.confidence >= 0.8
           AND f.merged_into IS NULL
"""
_FIRST: Final[LiteralString] = """
         ORDER BY f.importance DESC, f.confidence DESC, f.first_said_at, f.fact_id
         LIMIT %(limit)s
    )
"""
CORE_NOW: Final[LiteralString] = (
    PERSON
    + _IS_CORE
    + """
           AND f.status = 'active'
           AND (f.expires_at IS NULL OR f.expires_at > now())
"""
    + _FIRST
    + _CORE
)
CORE_AS_OF: Final[LiteralString] = (
    PERSON
    + _IS_CORE
    + """
           AND f.status <> 'deleted'
           AND f.mode <> 'plans'
           AND f.valid @> %(as_of)s::timestamptz
           AND (f.expires_at IS NULL OR f.expires_at > %(as_of)s)
"""
    + _FIRST
    + _CORE
)
