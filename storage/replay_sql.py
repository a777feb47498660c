"""The statements of replays. They are an operator's, and cross users."""

from typing import Final, LiteralString

_COLUMNS: Final[LiteralString] = """
    p.replay_id, p.generation, p.mode, p.status, p.source, p.rate, p.total, p.position, p.published,
    p.skipped, p.started_at, p.finished_at
"""

ADD_REPLAY: Final[LiteralString] = """
    INSERT INTO lis.replays (replay_id, generation, mode, status, source, rate, total, started_at)
    VALUES (%(replay_id)s, %(generation)s, %(mode)s, %(status)s, %(source)s::jsonb, %(rate)s, %(total)s,
            %(started_at)s)
    ON CONFLICT (replay_id) DO NOTHING
    RETURNING 1
"""

GET_REPLAY: Final[LiteralString] = (
    "SELECT " + _COLUMNS + " FROM lis.replays AS p WHERE p.replay_id = %(replay_id)s"  # noqa: S608 - literals alone
)

LIST_REPLAYS: Final[LiteralString] = (
    "SELECT "  # noqa: S608 - literals alone
    + _COLUMNS
    + " FROM lis.replays AS p ORDER BY p.started_at DESC, p.replay_id LIMIT %(most)s"
)

MOVE_REPLAY: Final[LiteralString] = """
    UPDATE lis.replays AS p
       SET status = CASE WHEN p.status = ANY (%(start)s::text[]) THEN %(to)s ELSE p.status END,
           finished_at = CASE WHEN p.status = ANY (%(start)s::text[]) AND %(to)s = 'done' THEN now()
                              ELSE p.finished_at END
     WHERE p.replay_id = %(replay_id)s
    RETURNING p.status
"""

BEGIN_FEEDING: Final[LiteralString] = """
    UPDATE lis.replays AS p
       SET feeder = %(feeder)s, updated_at = now()
     WHERE p.replay_id = %(replay_id)s
       AND (p.feeder IS NULL OR p.updated_at < now() - %(alive)s::interval)
    RETURNING 1
"""

BEAT: Final[LiteralString] = """
    UPDATE lis.replays AS p
       SET updated_at = now()
     WHERE p.replay_id = %(replay_id)s
       AND p.feeder = %(feeder)s
    RETURNING p.status
"""

END_FEEDING: Final[LiteralString] = """
    UPDATE lis.replays AS p
       SET feeder = NULL
     WHERE p.replay_id = %(replay_id)s
       AND p.feeder = %(feeder)s
"""

ADVANCE: Final[LiteralString] = """
    UPDATE lis.replays AS p
       SET position = %(position)s::jsonb,
           published = p.published + %(published)s,
           skipped = (SELECT coalesce(jsonb_object_agg(n.reason, n.total), '{}')
                        FROM (SELECT o.key AS reason, sum(o.value::bigint)::bigint AS total
                                FROM (SELECT * FROM jsonb_each_text(p.skipped)
                                      UNION ALL
                                      SELECT * FROM jsonb_each_text(%(skipped)s::jsonb)) AS o
                               GROUP BY o.key) AS n),
           updated_at = now()
     WHERE p.replay_id = %(replay_id)s
"""

# A fill has something to do where the generation that serves has no job; a label where it has none itself.
_MEANT: Final[LiteralString] = """
      FROM lis.sessions AS s
     WHERE s.ended_at < %(until)s
       AND (%(since)s::timestamptz IS NULL OR s.ended_at >= %(since)s)
       AND (%(tenant_id)s::text IS NULL OR s.tenant_id = %(tenant_id)s)
       AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
       AND NOT EXISTS (
               SELECT 1
                 FROM lis.extraction_jobs AS j
                WHERE j.tenant_id = s.tenant_id
                  AND j.session_id = s.session_id
                  AND j.user_id = s.user_id
                  AND j.generation = coalesce(%(label)s::text, s.serving_generation))
"""

COUNT_MEANT: Final[LiteralString] = "SELECT count(*)" + _MEANT

NEXT_MEANT: Final[LiteralString] = (
    "SELECT s.tenant_id, s.user_id, s.avatar_id, s.session_id, s.ended_at"
    + _MEANT
    + """
       AND (%(after_end)s::timestamptz IS NULL
            OR (s.ended_at, s.tenant_id, s.session_id)
               > (%(after_end)s::timestamptz, %(after_tenant)s::text, %(after_session)s::uuid))
     ORDER BY s.ended_at, s.tenant_id, s.session_id
     LIMIT %(most)s
"""
)

READ_STANDING: Final[LiteralString] = """
    SELECT g.place,
           CASE WHEN j.job_id IS NULL THEN 'unseen'
                WHEN j.status IN ('queued', 'running', 'retrying') THEN 'open'
                ELSE 'ended'
           END AS standing
      FROM json_to_recordset(%(sessions)s::json) AS g (place int, tenant_id text, session_id uuid)
      LEFT JOIN lis.sessions AS s
        ON s.tenant_id = g.tenant_id AND s.session_id = g.session_id
      LEFT JOIN lis.extraction_jobs AS j
        ON j.tenant_id = s.tenant_id AND j.session_id = s.session_id AND j.user_id = s.user_id
       AND j.generation = coalesce(%(label)s::text, s.serving_generation)
     ORDER BY g.place
"""

COUNT_JOBS: Final[LiteralString] = """
    SELECT j.status, count(*) AS jobs
      FROM lis.extraction_jobs AS j
     WHERE j.replay_id = %(replay_id)s
     GROUP BY j.status
"""
