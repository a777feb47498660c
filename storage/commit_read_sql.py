"""What a commit reads, for up to a few scopes at once, under their locks."""

from typing import Final, LiteralString

from storage.fact_rows import FACT_COLUMNS

# A statement of its own: what reads needs a snapshot that was taken after it.
LOCK_SCOPES: Final[LiteralString] = """
    SELECT pg_advisory_xact_lock(k.key)
      FROM unnest(%(keys)s::bigint[]) AS k (key)
"""

# The planner takes the rows of a JSON parameter for many and would read the tables of all users for the few
# slots of one; within this transaction every row is found by an index.
AS_PROJECTION: Final[LiteralString] = """
    SELECT set_config('afterword.projection', 'on', true),
           set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true),
           set_config('enable_seqscan', 'off', true),
           set_config('jit', 'off', true)
"""

HOLD_JOBS: Final[LiteralString] = """
    SELECT g.n, j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
           j.revision,
           j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
           j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id,
           s.serving_generation, now() AS now
      FROM json_to_recordset(%(scopes)s::json) AS g
           (n int, tenant_id text, user_id uuid, job_id uuid, fence bigint)
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = g.tenant_id AND j.user_id = g.user_id AND j.job_id = g.job_id AND j.fence = g.fence
      JOIN lis.sessions AS s
        ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
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

_AFFECTED: Final[LiteralString] = """
    WITH RECURSIVE scope AS MATERIALIZED (
        SELECT *
          FROM json_to_recordset(%(scopes)s::json) AS s
               (n int, tenant_id text, user_id uuid, avatar_id uuid, session_id uuid, generation text,
                again boolean, slots text[])
    ), touched AS (
        SELECT s.n, s.tenant_id, s.user_id, s.avatar_id, t.slot
          FROM scope AS s, unnest(s.slots) AS t (slot)
        UNION
        SELECT s.n, s.tenant_id, s.user_id, s.avatar_id, a.slot
          FROM scope AS s
          JOIN lis.assertions AS a
            ON a.user_id = s.user_id AND a.tenant_id = s.tenant_id AND a.avatar_id = s.avatar_id
           AND a.session_id = s.session_id AND a.generation = s.generation
         WHERE s.again
    ), affected AS (
        SELECT n, tenant_id, user_id, avatar_id, slot
          FROM touched
        UNION
        SELECT a.n, a.tenant_id, a.user_id, a.avatar_id, e.slot
          FROM affected AS a
         CROSS JOIN LATERAL (
                SELECT j.right_slot FROM lis.judgements AS j
                 WHERE j.user_id = a.user_id AND j.tenant_id = a.tenant_id AND j.avatar_id = a.avatar_id
                   AND j.left_slot = a.slot
                UNION ALL
                SELECT j.left_slot FROM lis.judgements AS j
                 WHERE j.user_id = a.user_id AND j.tenant_id = a.tenant_id AND j.avatar_id = a.avatar_id
                   AND j.right_slot = a.slot
                UNION ALL
                SELECT l.right_slot FROM lis.slot_links AS l
                 WHERE l.user_id = a.user_id AND l.tenant_id = a.tenant_id AND l.avatar_id = a.avatar_id
                   AND l.left_slot = a.slot
                UNION ALL
                SELECT l.left_slot FROM lis.slot_links AS l
                 WHERE l.user_id = a.user_id AND l.tenant_id = a.tenant_id AND l.avatar_id = a.avatar_id
                   AND l.right_slot = a.slot
               ) AS e (slot)
    )
"""

# The gateway takes no lock of ours: holding its rows makes its delete wait and then meet the new row.
HOLD_FACTS: Final[LiteralString] = (
    _AFFECTED  # noqa: S608 - literals alone
    + "SELECT a.n, "
    + FACT_COLUMNS
    + """
      FROM affected AS a
      JOIN lis.memory_facts AS f
        ON f.user_id = a.user_id AND f.tenant_id = a.tenant_id AND f.avatar_id = a.avatar_id
        AND f.slot = a.slot
       FOR UPDATE OF f
"""
)

READ_ASSERTIONS: Final[LiteralString] = (
    _AFFECTED  # noqa: S608 - literals alone
    + """
    SELECT a.n, e.session_id::text AS session_id, e.generation, e.position, e.said_at, e.slot, e.value,
           e.stance,
           e.amends, e.amends_value, e.valid_from, e.valid_to, e.expires_at, e.confidence, e.importance,
           e.category,
           e.asserted_by, e.message_ids, e.method, e.known_as, e.content, e.excerpt, e.model,
           e.spec_version,
           e.reasoning
      FROM affected AS a
      JOIN lis.assertions AS e
        ON e.user_id = a.user_id AND e.tenant_id = a.tenant_id AND e.avatar_id = a.avatar_id
        AND e.slot = a.slot
      LEFT JOIN lis.sessions AS s
        ON s.tenant_id = e.tenant_id AND s.user_id = e.user_id AND s.session_id = e.session_id
     WHERE e.generation = coalesce(s.serving_generation, e.generation)
"""
)

READ_REST: Final[LiteralString] = (
    _AFFECTED  # noqa: S608 - literals alone
    + """
    SELECT s.n, now() AS now, c.events,
           (SELECT json_agg(j)
              FROM (SELECT DISTINCT ON (j.left_claim, j.right_claim, j.authority) j.*
                      FROM affected AS a
                      JOIN lis.judgements AS j
                        ON j.user_id = a.user_id AND j.tenant_id = a.tenant_id AND j.avatar_id = a.avatar_id
                       AND j.left_slot = a.slot
                     WHERE a.n = s.n) AS j) AS judgements,
           (SELECT json_agg(l)
              FROM affected AS a
              JOIN lis.slot_links AS l
                ON l.user_id = a.user_id AND l.tenant_id = a.tenant_id AND l.avatar_id = a.avatar_id
               AND l.left_slot = a.slot
             WHERE a.n = s.n) AS links,
           (SELECT json_agg(r)
              FROM lis.retractions AS r
             WHERE r.user_id = s.user_id AND r.tenant_id = s.tenant_id AND r.avatar_id = s.avatar_id
           ) AS retractions,
           (SELECT json_agg(p)
              FROM affected AS a
              JOIN lis.pending_candidates AS p
                ON p.user_id = a.user_id AND p.tenant_id = a.tenant_id AND p.avatar_id = a.avatar_id
               AND p.slot = a.slot
             WHERE a.n = s.n) AS pending,
           (SELECT json_agg(q)
              FROM affected AS a
              JOIN lis.clarifications AS q
                ON q.user_id = a.user_id AND q.tenant_id = a.tenant_id AND q.avatar_id = a.avatar_id
               AND q.slot = a.slot
             WHERE a.n = s.n) AS clarifications,
           (SELECT json_agg(x)
              FROM lis.contradiction_notes AS x
             WHERE x.user_id = s.user_id AND x.tenant_id = s.tenant_id AND x.avatar_id = s.avatar_id
           ) AS notes
      FROM scope AS s
      LEFT JOIN lis.scopes AS c
        ON c.user_id = s.user_id AND c.tenant_id = s.tenant_id AND c.avatar_id = s.avatar_id
"""
)
