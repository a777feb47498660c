"""The statements of jobs, but for the commit."""

from typing import Final, LiteralString

# Two statements: the first one may wait for an intake that holds the job, and what the second one reads must
# not be older than what that intake wrote.
CLAIM: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET fence = j.fence + 1,
           attempts = CASE WHEN j.status = 'running' THEN j.attempts ELSE j.attempts + 1 END,
           status = 'running',
           started_at = now(),
           next_attempt_at = NULL,
           claimed_until = now() + g.deadline,
           worker = %(worker)s
      FROM json_to_recordset(%(orders)s::json) AS g
           (tenant_id text, user_id uuid, job_id uuid, deadline interval)
     WHERE j.tenant_id = g.tenant_id
       AND j.user_id = g.user_id
       AND j.job_id = g.job_id
       AND j.status IN ('queued', 'running', 'retrying')
       AND (j.next_attempt_at IS NULL OR j.next_attempt_at <= now())
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
    j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""

READ_CLAIMED: Final[LiteralString] = """
    SELECT s.tenant_id, g.job_id, s.ended_at, s.timezone, s.language, s.message_count,
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

TAKE_STRANDED: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET claimed_until = now()
     WHERE (j.tenant_id, j.job_id) IN (
               SELECT o.tenant_id, o.job_id
                 FROM lis.extraction_jobs AS o
                WHERE o.status IN ('queued', 'running', 'retrying')
                  AND greatest(o.queued_at, o.next_attempt_at, o.claimed_until, o.started_at)
                      < now() - %(older_than)s::interval
                ORDER BY o.queued_at
                LIMIT 500
                  FOR UPDATE SKIP LOCKED)
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status,
    j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""
