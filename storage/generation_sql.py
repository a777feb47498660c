"""The statements that compare, promote and remove a generation."""

from typing import Final, LiteralString

AT_ONE_MOMENT: Final[LiteralString] = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

FIND_GENERATION: Final[LiteralString] = """
    SELECT r.replay_id, r.generation, r.mode, r.status
      FROM lis.replays AS r
     WHERE r.replay_id = %(replay_id)s
"""

MARK: Final[LiteralString] = """
    UPDATE lis.replays AS r
       SET status = %(status)s, updated_at = now()
     WHERE r.replay_id = %(replay_id)s
       AND r.status <> 'discarded'
"""

COUNT_SESSIONS: Final[LiteralString] = """
    SELECT count(*) FILTER (WHERE k.standing = 'ready') AS ready,
           count(*) FILTER (WHERE k.standing = 'serving') AS serving,
           count(*) FILTER (WHERE k.standing = 'open') AS open,
           count(*) FILTER (WHERE k.standing = 'dead') AS dead,
           count(*) FILTER (WHERE k.standing = 'changed') AS changed,
           count(*) FILTER (WHERE k.standing = 'empty') AS empty,
           (array_agg(k.session_id) FILTER (WHERE k.standing = 'open'))[:20] AS named_open,
           (array_agg(k.session_id) FILTER (WHERE k.standing = 'dead'))[:20] AS named_dead,
           (array_agg(k.session_id) FILTER (WHERE k.standing = 'changed'))[:20] AS named_changed
      FROM (SELECT j.session_id,
                   CASE WHEN s.serving_generation = j.generation THEN 'serving'
                        WHEN j.status = 'dead' THEN 'dead'
                        WHEN j.status IN ('queued', 'running', 'retrying') THEN 'open'
                        WHEN j.status <> 'completed' THEN 'empty'
                        WHEN j.content_digest = s.digest THEN 'ready'
                        ELSE 'changed'
                   END AS standing
              FROM lis.extraction_jobs AS j
              JOIN lis.sessions AS s
                ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
             WHERE j.generation = %(generation)s
               AND j.generation <> 'live'
               AND (%(tenant_id)s::text IS NULL OR j.tenant_id = %(tenant_id)s)
               AND (%(user_id)s::uuid IS NULL OR j.user_id = %(user_id)s)
             ORDER BY j.session_id) AS k
"""

# A job that can be promoted: done, of what its session says now, and not served yet.
_IS_READY: Final[LiteralString] = """
               AND j.generation = %(generation)s
               AND j.generation <> 'live'
               AND j.status = 'completed'
               AND j.replay_mode = 'shadow'
               AND j.content_digest = s.digest
               AND s.serving_generation <> j.generation
"""
_READY: Final[LiteralString] = (
    """
              FROM lis.extraction_jobs AS j
              JOIN lis.sessions AS s
                ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
             WHERE (%(tenant_id)s::text IS NULL OR j.tenant_id = %(tenant_id)s)
               AND (%(user_id)s::uuid IS NULL OR j.user_id = %(user_id)s)
"""
    + _IS_READY
)

COUNT_SCOPES: Final[LiteralString] = (
    """
    SELECT count(*)
      FROM (SELECT DISTINCT j.user_id, j.tenant_id, j.avatar_id"""  # noqa: S608 - literals alone
    + _READY
    + """) AS k
"""
)

LIST_SCOPES: Final[LiteralString] = (
    "SELECT DISTINCT j.user_id, j.tenant_id, j.avatar_id"
    + _READY
    + """
               AND (%(after_user)s::uuid IS NULL
                    OR (j.user_id, j.tenant_id, j.avatar_id)
                       > (%(after_user)s::uuid, %(after_tenant)s::text, %(after_avatar)s::uuid))
     ORDER BY j.user_id, j.tenant_id, j.avatar_id
     LIMIT %(most)s
"""
)

_READY_OF_SCOPE: Final[LiteralString] = (
    """
    SELECT s.session_id, s.serving_generation, s.language
      FROM lis.sessions AS s
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = s.tenant_id AND j.user_id = s.user_id AND j.session_id = s.session_id
     WHERE s.user_id = %(user_id)s
       AND s.tenant_id = %(tenant_id)s
       AND s.avatar_id = %(avatar_id)s
"""  # noqa: S608 - literals alone
    + _IS_READY
    + """
     ORDER BY s.session_id
"""
)
READ_READY: Final[LiteralString] = _READY_OF_SCOPE
# The session's row before its job's, as intake does.
HOLD_READY: Final[LiteralString] = _READY_OF_SCOPE + "       FOR UPDATE OF s\n"

SLOTS_OF_SESSIONS: Final[LiteralString] = """
    SELECT DISTINCT a.slot
      FROM lis.assertions AS a
     WHERE a.user_id = %(user_id)s
       AND a.tenant_id = %(tenant_id)s
       AND a.avatar_id = %(avatar_id)s
       AND a.session_id = ANY (%(sessions)s::uuid[])
"""

PROMOTE_SESSIONS: Final[LiteralString] = """
    WITH given AS (
        SELECT g.session_id, g.replaced
          FROM unnest(%(sessions)s::uuid[], %(replaced)s::text[]) AS g (session_id, replaced)
    ), served AS (
        UPDATE lis.sessions AS s
           SET serving_generation = %(generation)s, updated_at = now()
          FROM given AS g
         WHERE s.tenant_id = %(tenant_id)s
           AND s.user_id = %(user_id)s
           AND s.session_id = g.session_id
    )
    UPDATE lis.extraction_jobs AS j
       SET replaced_generation = g.replaced
      FROM given AS g
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.session_id = g.session_id
       AND j.generation = %(generation)s
"""

IS_SERVING: Final[LiteralString] = """
    SELECT EXISTS (
        SELECT
          FROM lis.extraction_jobs AS j
          JOIN lis.sessions AS s
            ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
         WHERE j.generation = %(generation)s
           AND j.generation <> 'live'
           AND s.serving_generation = j.generation)
"""

# What is taken away goes in steps, each of a few sessions under their locks.
HOLD_UNSERVED: Final[LiteralString] = """
    SELECT j.user_id, j.tenant_id, j.session_id, j.generation
      FROM lis.sessions AS s
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = s.tenant_id AND j.user_id = s.user_id AND j.session_id = s.session_id
     WHERE j.generation = %(generation)s
       AND j.generation <> 'live'
       AND s.serving_generation <> j.generation
     ORDER BY s.tenant_id, s.session_id
     LIMIT %(most)s
       FOR UPDATE OF s
"""

HOLD_REPLACED: Final[LiteralString] = """
    SELECT j.user_id, j.tenant_id, j.session_id, j.replaced_generation AS generation
      FROM lis.sessions AS s
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = s.tenant_id AND j.user_id = s.user_id AND j.session_id = s.session_id
     WHERE j.generation = %(generation)s
       AND j.generation <> 'live'
       AND s.serving_generation = j.generation
       AND j.replaced_generation <> j.generation
       AND (s.tenant_id, s.session_id) > (%(after_tenant)s::text, %(after_session)s::uuid)
     ORDER BY s.tenant_id, s.session_id
     LIMIT %(most)s
       FOR UPDATE OF s
"""

DROP_ASSERTIONS_OF: Final[LiteralString] = """
    DELETE FROM lis.assertions AS a
     USING json_to_recordset(%(sessions)s::json) AS g
           (user_id uuid, tenant_id text, session_id uuid, generation text)
     WHERE a.user_id = g.user_id
       AND a.tenant_id = g.tenant_id
       AND a.session_id = g.session_id
       AND a.generation = g.generation
"""

DROP_WINDOWS_OF: Final[LiteralString] = """
    DELETE FROM lis.session_windows AS w
     USING json_to_recordset(%(sessions)s::json) AS g
           (user_id uuid, tenant_id text, session_id uuid, generation text)
     WHERE w.user_id = g.user_id
       AND w.tenant_id = g.tenant_id
       AND w.session_id = g.session_id
       AND w.generation = g.generation
"""

DROP_JOBS_OF: Final[LiteralString] = """
    DELETE FROM lis.extraction_jobs AS j
     USING json_to_recordset(%(sessions)s::json) AS g
           (user_id uuid, tenant_id text, session_id uuid, generation text)
     WHERE j.user_id = g.user_id
       AND j.tenant_id = g.tenant_id
       AND j.session_id = g.session_id
       AND j.generation = g.generation
"""
