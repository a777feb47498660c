"""The statements of intake."""

from typing import Final, LiteralString

ACCEPT_NEW: Final[LiteralString] = """
WITH given AS (
    SELECT *
      FROM json_to_recordset(%(sessions)s::json) AS g
           (tenant_id text, session_id uuid, user_id uuid, external_user_id text, avatar_id uuid,
            started_at timestamptz, ended_at timestamptz, message_count int, timezone text, language text,
            digest text, generation text, plan text, lane text, job_id uuid, status text, gate text,
            queued_at timestamptz, finished_at timestamptz, next_attempt_at timestamptz, traceparent text,
            correlation_id text, replay_id text, replay_mode text, messages json, records json)
), wanted AS (
    SELECT g.*
      FROM given AS g
      LEFT JOIN lis.tenants AS t ON t.tenant_id = g.tenant_id
      LEFT JOIN lis.proxy_users AS p
        ON p.tenant_id = g.tenant_id AND p.external_user_id = g.external_user_id
     WHERE coalesce(t.plan, 'free') = g.plan
       AND coalesce(p.user_id, g.user_id) = g.user_id
), users AS (
    INSERT INTO lis.proxy_users (tenant_id, external_user_id, user_id)
    SELECT DISTINCT tenant_id, external_user_id, user_id
      FROM wanted
     WHERE external_user_id IS NOT NULL
     ORDER BY tenant_id, external_user_id
        ON CONFLICT DO NOTHING
), fresh AS (
    INSERT INTO lis.sessions
        (tenant_id, session_id, user_id, avatar_id, started_at, ended_at, message_count, timezone,
         language, digest, revision)
    SELECT tenant_id, session_id, user_id, avatar_id, started_at, ended_at, message_count, timezone,
           language, decode(digest, 'hex'), 1
      FROM wanted
     ORDER BY tenant_id, session_id
        ON CONFLICT DO NOTHING
    RETURNING tenant_id, session_id
), stored AS (
    SELECT w.*
      FROM wanted AS w
      JOIN fresh AS f USING (tenant_id, session_id)
), messages AS (
    SELECT s.user_id, s.tenant_id, s.avatar_id, s.session_id, m.*
      FROM stored AS s,
           json_to_recordset(s.messages) AS m
           (message_id text, position int, role text, content text, name text, sent_at timestamptz,
            recall_id uuid, tokens text[], dl int)
), kept AS (
    INSERT INTO lis.chat_messages
        (user_id, tenant_id, avatar_id, session_id, message_id, position, role, content, name, sent_at)
    SELECT user_id, tenant_id, avatar_id, session_id, message_id, position, role, content, name, sent_at
      FROM messages
        ON CONFLICT DO NOTHING
), words AS (
    INSERT INTO lis.recall
        (user_id, tenant_id, avatar_id, id, kind, content, session_id, dl, tsv, valid_from)
    SELECT user_id, tenant_id, avatar_id, recall_id, 1, content, session_id, dl,
           array_to_tsvector(tokens), sent_at
      FROM messages
     WHERE tokens IS NOT NULL
        ON CONFLICT DO NOTHING
), jobs AS (
    INSERT INTO lis.extraction_jobs
        (tenant_id, job_id, user_id, avatar_id, session_id, generation, status, revision, gate, plan,
         lane, queued_at, finished_at, next_attempt_at, traceparent, correlation_id, replay_id, replay_mode)
    SELECT tenant_id, job_id, user_id, avatar_id, session_id, generation, status, 1, gate, plan, lane,
           queued_at, finished_at, next_attempt_at, traceparent, correlation_id, replay_id, replay_mode
      FROM stored
), records AS (
    INSERT INTO lis.outbox
        (topic, key, value, header_names, header_values, tenant_id, user_id, available_at)
    SELECT o.topic, decode(o.key, 'base64'), decode(o.value, 'base64'), o.header_names,
           ARRAY(SELECT decode(h, 'base64') FROM json_array_elements_text(o.header_values) AS h),
           s.tenant_id, s.user_id, coalesce(o.available_at, now())
      FROM stored AS s,
           json_to_recordset(s.records) AS o
           (topic text, key text, value text, header_names text[], header_values json,
            available_at timestamptz)
)
SELECT g.tenant_id, g.session_id, f.session_id IS NOT NULL AS is_fresh, pg_notify('afterword_outbox', '')
  FROM given AS g
  LEFT JOIN fresh AS f USING (tenant_id, session_id)
"""

RESOLVE_USER: Final[LiteralString] = """
    INSERT INTO lis.proxy_users (tenant_id, external_user_id, user_id)
    VALUES (%(tenant_id)s, %(external_user_id)s, %(user_id)s)
        ON CONFLICT (tenant_id, external_user_id) DO UPDATE SET user_id = lis.proxy_users.user_id
    RETURNING user_id
"""

READ_PLAN: Final[LiteralString] = """
    SELECT plan
      FROM lis.tenants
     WHERE tenant_id = %(tenant_id)s
"""

ADD_SESSION: Final[LiteralString] = """
    INSERT INTO lis.sessions (tenant_id, session_id, user_id, avatar_id, timezone, language)
    VALUES (%(tenant_id)s, %(session_id)s, %(user_id)s, %(avatar_id)s, %(timezone)s, %(language)s)
        ON CONFLICT DO NOTHING
"""

LOCK_SESSION: Final[LiteralString] = """
    SELECT s.user_id, s.avatar_id, s.ended_at, s.message_count, s.digest, s.revision,
           s.serving_generation
      FROM lis.sessions AS s
     WHERE s.tenant_id = %(tenant_id)s
       AND s.session_id = %(session_id)s
       FOR UPDATE
"""

READ_MESSAGES: Final[LiteralString] = """
    SELECT message_id, position, role, content, sent_at, name
      FROM lis.chat_messages
     WHERE user_id = %(user_id)s
       AND tenant_id = %(tenant_id)s
       AND avatar_id = %(avatar_id)s
       AND session_id = %(session_id)s
     ORDER BY position, message_id
"""

NOTE_CONFLICT: Final[LiteralString] = """
    UPDATE lis.sessions
       SET conflict = jsonb_build_object(
               'at', now(), 'ended_at', %(ended_at)s::timestamptz, 'digest', %(digest)s::text),
           updated_at = now()
     WHERE tenant_id = %(tenant_id)s
       AND user_id = %(user_id)s
       AND session_id = %(session_id)s
"""

WRITE_SESSION: Final[LiteralString] = """
    UPDATE lis.sessions
       SET started_at = coalesce(%(started_at)s, started_at),
           ended_at = %(ended_at)s,
           message_count = coalesce(%(message_count)s, message_count),
           timezone = coalesce(%(timezone)s, timezone),
           language = coalesce(%(language)s, language),
           digest = decode(%(digest)s, 'hex'),
           revision = revision + 1,
           conflict = NULL,
           updated_at = now()
     WHERE tenant_id = %(tenant_id)s
       AND user_id = %(user_id)s
       AND session_id = %(session_id)s
"""

DROP_MESSAGES: Final[LiteralString] = """
    WITH gone AS (
        DELETE FROM lis.chat_messages
         WHERE user_id = %(user_id)s
           AND tenant_id = %(tenant_id)s
           AND avatar_id = %(avatar_id)s
           AND session_id = %(session_id)s
           AND message_id <> ALL (%(message_ids)s::text[])
    )
    DELETE FROM lis.recall
     WHERE user_id = %(user_id)s
       AND tenant_id = %(tenant_id)s
       AND session_id = %(session_id)s
       AND kind = 1
       AND id <> ALL (%(recall_ids)s::uuid[])
"""

PUT_MESSAGES: Final[LiteralString] = """
    WITH messages AS (
        SELECT *
          FROM json_to_recordset(%(messages)s::json) AS m
               (message_id text, position int, role text, content text, name text, sent_at timestamptz,
                recall_id uuid, tokens text[], dl int)
    ), kept AS (
        INSERT INTO lis.chat_messages AS c
            (user_id, tenant_id, avatar_id, session_id, message_id, position, role, content, name, sent_at)
        SELECT DISTINCT ON (message_id)
               %(user_id)s::uuid, %(tenant_id)s::text, %(avatar_id)s::uuid, %(session_id)s::uuid,
               message_id, position, role, content, name, sent_at
          FROM messages
            ON CONFLICT (user_id, tenant_id, avatar_id, session_id, message_id) DO UPDATE
           SET position = excluded.position, role = excluded.role, content = excluded.content,
               name = excluded.name, sent_at = excluded.sent_at
         WHERE (c.position, c.role, c.content, c.name, c.sent_at) IS DISTINCT FROM
               (excluded.position, excluded.role, excluded.content, excluded.name, excluded.sent_at)
    )
    INSERT INTO lis.recall AS r
        (user_id, tenant_id, avatar_id, id, kind, content, session_id, dl, tsv, valid_from)
    SELECT DISTINCT ON (recall_id)
           %(user_id)s::uuid, %(tenant_id)s::text, %(avatar_id)s::uuid, recall_id, 1, content,
           %(session_id)s::uuid, dl, array_to_tsvector(tokens), sent_at
      FROM messages
     WHERE tokens IS NOT NULL
        ON CONFLICT (user_id, tenant_id, avatar_id, id) DO UPDATE
       SET content = excluded.content, dl = excluded.dl, tsv = excluded.tsv, valid_from = excluded.valid_from,
           embedding = NULL, updated_at = now()
     WHERE r.content <> excluded.content
"""

ADD_JOB: Final[LiteralString] = """
    INSERT INTO lis.extraction_jobs
        (tenant_id, job_id, user_id, avatar_id, session_id, generation, status, revision, gate, plan, lane,
         queued_at, finished_at, next_attempt_at, traceparent, correlation_id, replay_id, replay_mode)
    VALUES
        (%(tenant_id)s, %(job_id)s, %(user_id)s, %(avatar_id)s, %(session_id)s, %(generation)s, %(status)s,
         %(revision)s, %(gate)s, %(plan)s, %(lane)s, %(queued_at)s, %(finished_at)s, %(next_attempt_at)s,
         %(traceparent)s, %(correlation_id)s, %(replay_id)s, %(replay_mode)s)
"""

LOCK_JOB: Final[LiteralString] = """
    SELECT j.revision, j.status
      FROM lis.extraction_jobs AS j
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
       FOR UPDATE
"""

REVISE_JOB: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET revision = j.revision + 1,
           status = 'queued',
           gate = NULL,
           fence = j.fence + 1,
           attempts = 0,
           lane = coalesce(%(lane)s, j.lane),
           queued_at = %(now)s,
           started_at = NULL,
           finished_at = NULL,
           next_attempt_at = %(due_at)s,
           claimed_until = NULL,
           error = NULL,
           traceparent = coalesce(%(traceparent)s, j.traceparent),
           correlation_id = coalesce(%(correlation_id)s, j.correlation_id)
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status, j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""

# A worker of another generation holds what the session no longer says; what nobody took will be read anew.
REVISE_RUNNING: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET revision = j.revision + 1,
           status = 'queued',
           fence = j.fence + 1,
           attempts = 0,
           queued_at = %(now)s,
           started_at = NULL,
           next_attempt_at = %(due_at)s,
           claimed_until = NULL,
           error = NULL
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.session_id = %(session_id)s
       AND j.job_id <> %(job_id)s
       AND j.status = 'running'
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status, j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""

POST_TO_OPEN: Final[LiteralString] = """
    WITH session AS (
        INSERT INTO lis.sessions AS s (tenant_id, session_id, user_id, avatar_id, timezone, language)
        SELECT %(tenant_id)s::text, %(session_id)s::uuid, %(user_id)s::uuid, %(avatar_id)s::uuid,
               %(timezone)s::text, %(language)s::text
         WHERE NOT EXISTS (
                   SELECT
                     FROM lis.proxy_users AS p
                    WHERE p.tenant_id = %(tenant_id)s
                      AND p.external_user_id = %(external_user_id)s
                      AND p.user_id <> %(user_id)s::uuid)
            ON CONFLICT (tenant_id, session_id) DO UPDATE
           SET updated_at = now()
         WHERE s.ended_at IS NULL
           AND s.user_id = excluded.user_id
           AND s.avatar_id = excluded.avatar_id
        RETURNING s.tenant_id, s.session_id, s.user_id, s.avatar_id
    ), users AS (
        INSERT INTO lis.proxy_users (tenant_id, external_user_id, user_id)
        SELECT tenant_id, %(external_user_id)s, user_id
          FROM session
         WHERE %(external_user_id)s::text IS NOT NULL
            ON CONFLICT DO NOTHING
    ), kept AS (
        INSERT INTO lis.chat_messages AS c
            (user_id, tenant_id, avatar_id, session_id, message_id, position, role, content, name, sent_at)
        SELECT user_id, tenant_id, avatar_id, session_id, %(message_id)s, %(position)s, %(role)s, %(content)s,
               %(name)s, %(sent_at)s
          FROM session
            ON CONFLICT (user_id, tenant_id, avatar_id, session_id, message_id) DO UPDATE
           SET position = excluded.position, role = excluded.role, content = excluded.content,
               name = excluded.name, sent_at = excluded.sent_at
    ), words AS (
        INSERT INTO lis.recall AS r
            (user_id, tenant_id, avatar_id, id, kind, content, session_id, dl, tsv, valid_from)
        SELECT user_id, tenant_id, avatar_id, %(recall_id)s, 1, %(content)s, session_id, %(dl)s,
               array_to_tsvector(%(tokens)s::text[]), %(sent_at)s
          FROM session
            ON CONFLICT (user_id, tenant_id, avatar_id, id) DO UPDATE
           SET content = excluded.content, dl = excluded.dl, tsv = excluded.tsv,
               valid_from = excluded.valid_from
    )
    SELECT user_id
      FROM session
"""
