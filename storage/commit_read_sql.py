"""What a commit reads, for up to a few scopes at once, under their locks."""

from typing import Final, LiteralString

from domain.memory.slots import EVERYWHERE_TEXT
from storage.fact_rows import FACT_COLUMNS

# A statement of its own: what reads needs a snapshot that was taken after it.
LOCK_SCOPES: Final[LiteralString] = """
    SELECT pg_advisory_xact_lock(k.key)
      FROM unnest(%(keys)s::bigint[]) AS k (key)
"""

# The planner takes the rows of a JSON parameter for many and would read the tables of all users for the few
# slots of one; within this transaction every row is found by an index. One plan serves all parameters, since
# planning over all partitions costs more than what it plans.
AS_PROJECTION: Final[LiteralString] = """
    SELECT set_config('afterword.projection', 'on', true),
           set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true),
           set_config('enable_seqscan', 'off', true),
           set_config('jit', 'off', true),
           set_config('plan_cache_mode', 'force_generic_plan', true)
"""

# The session's row before its job's, as intake does: what serves changes under both and the scope's lock.
HOLD_JOBS: Final[LiteralString] = """
    WITH held AS MATERIALIZED (
        SELECT g.n, g.fence, g.job_id, s.tenant_id, s.user_id, s.serving_generation
          FROM json_to_recordset(%(scopes)s::json) AS g
               (n int, tenant_id text, user_id uuid, session_id uuid, job_id uuid, fence bigint)
          JOIN lis.sessions AS s
            ON s.tenant_id = g.tenant_id AND s.user_id = g.user_id AND s.session_id = g.session_id
           FOR NO KEY UPDATE OF s
    )
    SELECT g.n, j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
           j.revision,
           j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
           j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id,
           j.replay_mode, j.replaced_generation, g.serving_generation, now() AS now
      FROM held AS g
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = g.tenant_id AND j.user_id = g.user_id AND j.job_id = g.job_id AND j.fence = g.fence
     WHERE j.status = 'running'
       FOR UPDATE OF j
"""

TOUCHED_BY_COMMANDS: Final[LiteralString] = """
    SELECT DISTINCT f.slot
      FROM lis.memory_facts AS f
     WHERE f.user_id = %(user_id)s
       AND f.tenant_id = %(tenant_id)s
       AND f.avatar_id = %(avatar_id)s
       AND f.told_status IS DISTINCT FROM f.status
"""

# Where the user is a parameter, that user's partition alone is opened; out of a row it would be all of them.
_TOUCHED: Final[LiteralString] = """
    WITH RECURSIVE touched AS (
        SELECT t.slot
          FROM unnest(%(slots)s::text[]) AS t (slot)
"""
_SAID_BEFORE: Final[LiteralString] = """
        UNION
        SELECT a.slot
          FROM lis.assertions AS a
         WHERE a.user_id = %(user_id)s
           AND a.tenant_id = %(tenant_id)s
           AND a.session_id = %(session_id)s
           AND (%(generation)s::text IS NULL OR a.generation = %(generation)s)
           AND a.avatar_id = %(avatar_id)s
"""
# What is said of every slot reaches every slot, and is read with every one.
_AFFECTED: Final[LiteralString] = (
    """
    ), affected AS (
        SELECT slot
          FROM touched
        UNION
        SELECT e.slot
          FROM affected AS a
         CROSS JOIN LATERAL (
                SELECT j.right_slot FROM lis.judgements AS j
                 WHERE j.user_id = %(user_id)s AND j.tenant_id = %(tenant_id)s AND j.avatar_id = %(avatar_id)s
                   AND j.left_slot = a.slot
                UNION ALL
                SELECT j.left_slot FROM lis.judgements AS j
                 WHERE j.user_id = %(user_id)s AND j.tenant_id = %(tenant_id)s AND j.avatar_id = %(avatar_id)s
                   AND j.right_slot = a.slot
                UNION ALL
                SELECT l.right_slot FROM lis.slot_links AS l
                 WHERE l.user_id = %(user_id)s AND l.tenant_id = %(tenant_id)s AND l.avatar_id = %(avatar_id)s
                   AND l.left_slot = a.slot
                UNION ALL
                SELECT l.left_slot FROM lis.slot_links AS l
                 WHERE l.user_id = %(user_id)s AND l.tenant_id = %(tenant_id)s AND l.avatar_id = %(avatar_id)s
                   AND l.right_slot = a.slot
                UNION ALL
                SELECT s.slot FROM lis.assertions AS s
                 WHERE s.user_id = %(user_id)s AND s.tenant_id = %(tenant_id)s AND s.avatar_id = %(avatar_id)s
                   AND a.slot = '"""  # noqa: S608 - literals alone
    + EVERYWHERE_TEXT
    + """'
               ) AS e (slot)
    )
"""
)

# The gateway takes no lock of ours: holding its rows makes its delete wait and then meet the new row.
_FACTS: Final[LiteralString] = (
    "SELECT "  # noqa: S608 - literals alone
    + FACT_COLUMNS
    + """
      FROM affected AS a
      JOIN lis.memory_facts AS f
        ON f.user_id = %(user_id)s AND f.tenant_id = %(tenant_id)s AND f.avatar_id = %(avatar_id)s
       AND f.slot = a.slot
"""
)
_HELD: Final[LiteralString] = "       FOR UPDATE OF f\n"
_ASSERTIONS: Final[LiteralString] = (
    """
    SELECT e.session_id::text AS session_id, e.generation, e.position, e.said_at, e.slot, e.value,
           e.stance, e.amends, e.amends_value, e.valid_from, e.valid_to, e.day, e.expires_at,
           e.confidence, e.importance, e.category, e.asserted_by, e.message_ids, e.method, e.known_as,
           e.content, e.excerpt, e.model,
           e.spec_version, e.reasoning, e.aliases, e.topics
      FROM (SELECT slot FROM affected
             UNION
            SELECT '"""  # noqa: S608 - literals alone
    + EVERYWHERE_TEXT
    + """') AS a
      JOIN lis.assertions AS e
        ON e.user_id = %(user_id)s AND e.tenant_id = %(tenant_id)s AND e.avatar_id = %(avatar_id)s
       AND e.slot = a.slot
      LEFT JOIN lis.sessions AS s
        ON s.tenant_id = e.tenant_id AND s.user_id = e.user_id AND s.session_id = e.session_id
     WHERE e.generation = coalesce(s.serving_generation, e.generation)
"""
)
# What a promotion brings, beside what serves now.
_OF_LABEL: Final[LiteralString] = """
        OR (e.generation = %(generation)s AND e.session_id = ANY (%(sessions)s::uuid[]))
"""
_REST: Final[LiteralString] = """
    SELECT now() AS now,
           (SELECT c.events
              FROM lis.scopes AS c
             WHERE c.user_id = %(user_id)s AND c.tenant_id = %(tenant_id)s AND c.avatar_id = %(avatar_id)s
           ) AS events,
           (SELECT json_agg(j)
              FROM (SELECT DISTINCT ON (j.left_claim, j.right_claim, j.authority) j.*
                      FROM affected AS a
                      JOIN lis.judgements AS j ON j.left_slot = a.slot
                     WHERE j.user_id = %(user_id)s AND j.tenant_id = %(tenant_id)s
                       AND j.avatar_id = %(avatar_id)s) AS j) AS judgements,
           (SELECT json_agg(l)
              FROM affected AS a
              JOIN lis.slot_links AS l ON l.left_slot = a.slot
             WHERE l.user_id = %(user_id)s AND l.tenant_id = %(tenant_id)s AND l.avatar_id = %(avatar_id)s
           ) AS links,
           (SELECT json_agg(r)
              FROM lis.retractions AS r
             WHERE r.user_id = %(user_id)s AND r.tenant_id = %(tenant_id)s AND r.avatar_id = %(avatar_id)s
           ) AS retractions,
           (SELECT json_agg(p)
              FROM affected AS a
              JOIN lis.pending_candidates AS p ON p.slot = a.slot
             WHERE p.user_id = %(user_id)s AND p.tenant_id = %(tenant_id)s AND p.avatar_id = %(avatar_id)s
           ) AS pending,
           (SELECT json_agg(q)
              FROM affected AS a
              JOIN lis.clarifications AS q ON q.slot = a.slot
             WHERE q.user_id = %(user_id)s AND q.tenant_id = %(tenant_id)s AND q.avatar_id = %(avatar_id)s
           ) AS clarifications,
           (SELECT json_agg(x)
              FROM lis.contradiction_notes AS x
             WHERE x.user_id = %(user_id)s AND x.tenant_id = %(tenant_id)s AND x.avatar_id = %(avatar_id)s
           ) AS notes
"""

HOLD_FACTS: Final[LiteralString] = _TOUCHED + _AFFECTED + _FACTS + _HELD
HOLD_FACTS_AGAIN: Final[LiteralString] = _TOUCHED + _SAID_BEFORE + _AFFECTED + _FACTS + _HELD
READ_ASSERTIONS: Final[LiteralString] = _TOUCHED + _AFFECTED + _ASSERTIONS
READ_ASSERTIONS_AGAIN: Final[LiteralString] = _TOUCHED + _SAID_BEFORE + _AFFECTED + _ASSERTIONS
READ_REST: Final[LiteralString] = _TOUCHED + _AFFECTED + _REST
READ_REST_AGAIN: Final[LiteralString] = _TOUCHED + _SAID_BEFORE + _AFFECTED + _REST
READ_FACTS: Final[LiteralString] = _TOUCHED + _AFFECTED + _FACTS
READ_ASSERTIONS_WITH_LABEL: Final[LiteralString] = _TOUCHED + _AFFECTED + _ASSERTIONS + _OF_LABEL
