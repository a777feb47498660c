"""The statements of an operator's work on dead letters."""

from typing import Final, LiteralString

LIST_LETTERS: Final[LiteralString] = """
    SELECT d.topic, d.partition, d."offset", d.error_class, d.reason, d.status, d.attempts, d.replays,
           d.tenant_id, coalesce(octet_length(d.value), 0) AS size, d.sent_at, d.first_failed_at,
           d.redriven_at, d.closed_at
      FROM lis.dead_letters AS d
     WHERE (%(topics)s::text[] IS NULL OR d.topic = ANY (%(topics)s::text[]))
       AND (%(classes)s::text[] IS NULL OR d.error_class = ANY (%(classes)s::text[]))
       AND (%(statuses)s::text[] IS NULL OR d.status = ANY (%(statuses)s::text[]))
       AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s::text)
       AND (%(since)s::timestamptz IS NULL OR d.first_failed_at >= %(since)s::timestamptz)
       AND (%(until)s::timestamptz IS NULL OR d.first_failed_at < %(until)s::timestamptz)
     ORDER BY d.first_failed_at DESC, d.topic DESC, d.partition DESC, d."offset" DESC
     LIMIT %(most)s::int
"""

GROUP_LETTERS: Final[LiteralString] = """
    SELECT d.topic, d.error_class, count(*)
      FROM lis.dead_letters AS d
     WHERE (%(topics)s::text[] IS NULL OR d.topic = ANY (%(topics)s::text[]))
       AND (%(classes)s::text[] IS NULL OR d.error_class = ANY (%(classes)s::text[]))
       AND (%(statuses)s::text[] IS NULL OR d.status = ANY (%(statuses)s::text[]))
       AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s::text)
       AND (%(since)s::timestamptz IS NULL OR d.first_failed_at >= %(since)s::timestamptz)
       AND (%(until)s::timestamptz IS NULL OR d.first_failed_at < %(until)s::timestamptz)
     GROUP BY d.topic, d.error_class
     ORDER BY d.topic, d.error_class
"""

LIST_PLACES: Final[LiteralString] = """
    SELECT d.topic, d.partition, d."offset"
      FROM lis.dead_letters AS d
     WHERE (%(topics)s::text[] IS NULL OR d.topic = ANY (%(topics)s::text[]))
       AND (%(classes)s::text[] IS NULL OR d.error_class = ANY (%(classes)s::text[]))
       AND (%(statuses)s::text[] IS NULL OR d.status = ANY (%(statuses)s::text[]))
       AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s::text)
       AND (%(since)s::timestamptz IS NULL OR d.first_failed_at >= %(since)s::timestamptz)
       AND (%(until)s::timestamptz IS NULL OR d.first_failed_at < %(until)s::timestamptz)
       AND (%(after_topic)s::text IS NULL OR (d.topic, d.partition, d."offset") >
            (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint))
     ORDER BY d.topic, d.partition, d."offset"
     LIMIT %(most)s::int
"""

FIND_LETTER: Final[LiteralString] = """
    SELECT d.topic, d.partition, d."offset", d.error_class, d.reason, d.status, d.attempts, d.replays,
           d.tenant_id, coalesce(octet_length(d.value), 0) AS size, d.sent_at, d.first_failed_at,
           d.redriven_at, d.closed_at, d.key, d.value,
           d.header_names, d.header_values
      FROM lis.dead_letters AS d
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
"""

# The row's lock and its status, looked at again behind the lock, let one of several redrives have it.
TAKE_LETTER: Final[LiteralString] = """
    UPDATE lis.dead_letters AS d
       SET status = 'redriven', replays = d.replays + 1, redriven_at = now(), closed_at = NULL, job_id = NULL
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
       AND d.status = ANY (%(statuses)s::text[])
    RETURNING d.topic, d.partition, d."offset", d.key, d.value, d.header_names, d.header_values, d.sent_at,
              d.replays
"""

NAME_JOB: Final[LiteralString] = """
    UPDATE lis.dead_letters AS d
       SET job_id = %(job_id)s, tenant_id = %(tenant_id)s
     WHERE d.topic = %(topic)s
       AND d.partition = %(partition)s::int
       AND d."offset" = %(offset)s::bigint
"""

FLAG_JOB: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET is_redriven = true
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
       AND j.status IN ('queued', 'running', 'retrying', 'dead')
    RETURNING j.status
"""

# The number rises so that what is told of the job now has an id of its own.
RENEW_JOB: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET status = 'queued', attempts = 0, fence = j.fence + 1, lane = 'replay', queued_at = now(),
           started_at = NULL, finished_at = NULL, next_attempt_at = NULL, claimed_until = NULL, worker = NULL,
           error = NULL
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
       AND j.status = 'dead'
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.status, j.revision,
              j.gate, j.plan, j.lane, j.fence, j.attempts, j.queued_at, j.started_at, j.finished_at,
              j.next_attempt_at, j.outcome, j.error, j.traceparent, j.correlation_id
"""

PURGE_LETTERS: Final[LiteralString] = """
    DELETE FROM lis.dead_letters AS d
     USING unnest(%(at_topics)s::text[], %(at_partitions)s::int[], %(at_offsets)s::bigint[])
           AS p (topic, partition, place)
     WHERE d.topic = p.topic
       AND d.partition = p.partition
       AND d."offset" = p.place
       AND (%(topics)s::text[] IS NULL OR d.topic = ANY (%(topics)s::text[]))
       AND (%(classes)s::text[] IS NULL OR d.error_class = ANY (%(classes)s::text[]))
       AND (%(statuses)s::text[] IS NULL OR d.status = ANY (%(statuses)s::text[]))
       AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s::text)
       AND (%(since)s::timestamptz IS NULL OR d.first_failed_at >= %(since)s::timestamptz)
       AND (%(until)s::timestamptz IS NULL OR d.first_failed_at < %(until)s::timestamptz)
"""
