"""The statements of jobs, but for the commit."""

from typing import Final, LiteralString

# Whoever counts the running jobs of a tenant must be alone with it, and see what the one before has taken: a
# statement of its own, since a statement sees what was committed before it began.
LOCK_TENANTS: Final[LiteralString] = """
    SELECT pg_advisory_xact_lock(k.key)
      FROM unnest(%(keys)s::bigint[]) AS k (key)
"""

# Each job is looked up by itself: the planner takes the orders for many, and would read the whole table.
# A worker that claims its own job again, since an outage broke its connection, has not been lost.
# Two statements: the first one may wait for an intake that holds the job, and what the second one reads must
# not be older than what that intake wrote.
CLAIM: Final[LiteralString] = """
    WITH due AS (
        SELECT j.tenant_id, j.user_id, j.job_id, g.deadline, j.lane = 'replay' AS is_replay,
               row_number() OVER (PARTITION BY j.tenant_id, j.lane = 'replay'
                                      ORDER BY j.status = 'running' DESC, g.place) AS place
          FROM json_to_recordset(%(orders)s::json) AS g
               (tenant_id text, user_id uuid, job_id uuid, deadline interval, place int)
         CROSS JOIN LATERAL (
                SELECT o.tenant_id, o.user_id, o.job_id, o.lane, o.status
                  FROM lis.extraction_jobs AS o
                 WHERE o.tenant_id = g.tenant_id
                   AND o.user_id = g.user_id
                   AND o.job_id = g.job_id
                   AND o.status IN ('queued', 'running', 'retrying')
                   AND (o.next_attempt_at IS NULL OR o.next_attempt_at <= now())
                 LIMIT 1) AS j
    ), free AS (
        SELECT d.tenant_id, d.is_replay,
               CASE WHEN d.is_replay
                    THEN greatest(coalesce(t.slots, %(slots)s::int) / 2, 1)
                    ELSE coalesce(t.slots, %(slots)s::int)
               END - (SELECT count(*)
                        FROM lis.extraction_jobs AS r
                       WHERE r.tenant_id = d.tenant_id
                         AND r.status = 'running'
                         AND (r.lane = 'replay') = d.is_replay
                         AND r.claimed_until > now()
                         AND r.job_id <> ALL (d.job_ids)) AS places
          FROM (SELECT tenant_id, is_replay, array_agg(job_id) AS job_ids
                  FROM due
                 GROUP BY tenant_id, is_replay) AS d
          LEFT JOIN lis.tenants AS t ON t.tenant_id = d.tenant_id
    ), taken AS (
        UPDATE lis.extraction_jobs AS j
           SET fence = j.fence + 1,
               attempts = CASE WHEN j.status = 'running' THEN j.attempts ELSE j.attempts + 1 END,
               takeovers = CASE
                   WHEN j.status <> 'running' THEN 0
                   WHEN j.worker = %(worker)s THEN j.takeovers
                   ELSE j.takeovers + 1
               END,
               status = 'running',
               started_at = now(),
               next_attempt_at = NULL,
               claimed_until = now() + d.deadline,
               worker = %(worker)s
          FROM due AS d
          JOIN free AS f ON f.tenant_id = d.tenant_id AND f.is_replay = d.is_replay AND d.place <= f.places
         WHERE j.tenant_id = d.tenant_id
           AND j.user_id = d.user_id
           AND j.job_id = d.job_id
           AND j.status IN ('queued', 'running', 'retrying')
           AND (j.next_attempt_at IS NULL OR j.next_attempt_at <= now())
        RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
        j.revision,
                  j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
                  j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id, j.takeovers
    )
    SELECT d.tenant_id AS of_tenant, d.job_id AS of_job, d.place > f.places AS is_beyond, j.*
      FROM due AS d
      JOIN free AS f ON f.tenant_id = d.tenant_id AND f.is_replay = d.is_replay
      LEFT JOIN taken AS j ON j.tenant_id = d.tenant_id AND j.job_id = d.job_id
"""

# A cap keeps the count cheap; beyond it the wait has its longest already, unless jobs take milliseconds.
COUNT_WAITING: Final[LiteralString] = """
    SELECT g.tenant_id, k.is_replay,
           CASE WHEN k.is_replay
                THEN greatest(coalesce(t.slots, %(slots)s::int) / 2, 1)
                ELSE coalesce(t.slots, %(slots)s::int)
           END AS slots,
           (SELECT count(*)
              FROM (SELECT 1
                      FROM lis.extraction_jobs AS j
                     WHERE j.tenant_id = g.tenant_id
                       AND j.status = 'queued'
                       AND (j.lane = 'replay') = k.is_replay
                     LIMIT 20000) AS queued) AS waiting
      FROM unnest(%(tenants)s::text[]) AS g (tenant_id)
     CROSS JOIN (VALUES (false), (true)) AS k (is_replay)
      LEFT JOIN lis.tenants AS t ON t.tenant_id = g.tenant_id
"""

# A running job stays with whoever runs it: only its order comes again, in case that worker is dead.
PUT_OFF: Final[LiteralString] = """
    WITH given AS MATERIALIZED (
        SELECT g.tenant_id, g.user_id, g.job_id, q.is_replay,
               now() + make_interval(secs => greatest(q.seconds * random(), q.shortest)) AS due_at
          FROM json_to_recordset(%(orders)s::json) AS g (tenant_id text, user_id uuid, job_id uuid)
          JOIN json_to_recordset(%(queues)s::json) AS q
               (tenant_id text, is_replay boolean, seconds float8, shortest float8)
            ON q.tenant_id = g.tenant_id
    )
    UPDATE lis.extraction_jobs AS j
       SET next_attempt_at = CASE WHEN j.status <> 'running' THEN g.due_at END
      FROM given AS g
     WHERE j.tenant_id = g.tenant_id
       AND j.user_id = g.user_id
       AND j.job_id = g.job_id
       AND (j.lane = 'replay') = g.is_replay
       AND j.status IN ('queued', 'running', 'retrying')
       AND (j.next_attempt_at IS NULL OR j.next_attempt_at <= now())
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.lane,
              j.traceparent, j.correlation_id, g.due_at
"""

READ_CLAIMED: Final[LiteralString] = """
    SELECT s.tenant_id, g.job_id, s.ended_at, s.timezone, s.language, s.message_count,
           s.digest AS content_digest, j.replay_mode,
           EXISTS (SELECT 1
                     FROM lis.scopes AS c
                    WHERE c.user_id = s.user_id AND c.tenant_id = s.tenant_id
                      AND c.avatar_id = s.avatar_id) AS has_memory,
           (SELECT t.allowed_categories
              FROM lis.tenants AS t
             WHERE t.tenant_id = s.tenant_id) AS allowed_categories,
           (SELECT json_agg(json_build_object(
                       'message_id', m.message_id, 'position', m.position, 'role', m.role, 'content',
                       m.content,
                       'name', m.name, 'sent_at', m.sent_at) ORDER BY m.position, m.message_id)
              FROM lis.chat_messages AS m
             WHERE m.user_id = s.user_id
               AND m.tenant_id = s.tenant_id
               AND m.avatar_id = s.avatar_id
               AND m.session_id = s.session_id) AS messages,
           (SELECT json_object_agg(w.digest, w.candidates)
              FROM lis.session_windows AS w
             WHERE w.user_id = s.user_id
               AND w.tenant_id = s.tenant_id
               AND w.avatar_id = s.avatar_id
               AND w.session_id = s.session_id
               AND w.generation = j.generation) AS kept
      FROM json_to_recordset(%(orders)s::json) AS g
           (tenant_id text, user_id uuid, job_id uuid)
      JOIN lis.extraction_jobs AS j
        ON j.tenant_id = g.tenant_id AND j.user_id = g.user_id AND j.job_id = g.job_id
      JOIN lis.sessions AS s
        ON s.tenant_id = j.tenant_id AND s.user_id = j.user_id AND s.session_id = j.session_id
     WHERE j.status = 'running'
"""

KEEP_WINDOWS: Final[LiteralString] = """
    WITH held AS (
        SELECT j.user_id, j.tenant_id, j.avatar_id, j.session_id, j.generation
          FROM lis.extraction_jobs AS j
         WHERE j.tenant_id = %(tenant_id)s
           AND j.user_id = %(user_id)s
           AND j.job_id = %(job_id)s
           AND j.fence = %(fence)s
           AND j.status = 'running'
           FOR UPDATE
    ), progressed AS (
        UPDATE lis.extraction_jobs AS j
           SET takeovers = 0
          FROM held AS h
         WHERE j.tenant_id = %(tenant_id)s
           AND j.user_id = %(user_id)s
           AND j.job_id = %(job_id)s
           AND j.takeovers > 0
    ), written AS (
        INSERT INTO lis.session_windows (user_id, tenant_id, avatar_id, session_id, generation, digest,
        candidates)
        SELECT h.user_id, h.tenant_id, h.avatar_id, h.session_id, h.generation, w.digest, w.candidates
          FROM held AS h, json_to_recordset(%(windows)s::json) AS w (digest text, candidates jsonb)
            ON CONFLICT (user_id, tenant_id, avatar_id, session_id, generation, digest) DO NOTHING
    )
    SELECT 1
      FROM held
"""

END_ATTEMPT: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET status = %(status)s,
           gate = coalesce(%(gate)s, j.gate),
           attempts = j.attempts - %(uncounted)s::int,
           next_attempt_at = now() + %(due_in)s::interval,
           finished_at = CASE WHEN %(is_final)s::boolean THEN now() END,
           claimed_until = NULL,
           error = coalesce(%(error)s::jsonb, j.error)
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
       AND j.fence = %(fence)s
       AND j.status = 'running'
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
    j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""

# A running job whose time is up has nobody; one that waits may have its order in a topic that is read slowly.
TAKE_STRANDED: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET claimed_until = CASE WHEN j.status = 'running' THEN now() + %(older_than)s::interval ELSE now() END
     WHERE (j.tenant_id, j.job_id) IN (
               SELECT o.tenant_id, o.job_id
                 FROM lis.extraction_jobs AS o
                WHERE o.status IN ('queued', 'running', 'retrying')
                  AND CASE WHEN o.status = 'running'
                           THEN o.claimed_until < now() - interval '10 s'
                           ELSE greatest(o.queued_at, o.next_attempt_at, o.claimed_until, o.started_at)
                                < now() - %(older_than)s::interval
                      END
                ORDER BY o.queued_at
                LIMIT 500
                  FOR UPDATE SKIP LOCKED)
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
    j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""
