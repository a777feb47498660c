"""What a commit writes, one statement a table, for up to a few scopes at once."""

from typing import Final, LiteralString

DROP_ASSERTIONS: Final[LiteralString] = """
    DELETE FROM lis.assertions AS a
     USING json_to_recordset(%(scopes)s::json) AS s
           (tenant_id text, user_id uuid, avatar_id uuid, session_id uuid, generation text, again boolean)
     WHERE a.user_id = s.user_id
       AND a.tenant_id = s.tenant_id
       AND a.avatar_id = s.avatar_id
       AND a.session_id = s.session_id
       AND a.generation = s.generation
       AND s.again
"""

ADD_ASSERTIONS: Final[LiteralString] = """
    INSERT INTO lis.assertions
        (user_id, tenant_id, avatar_id, assertion_id, session_id, generation, position, said_at, slot,
         value, norm, stance, amends, amends_value, valid_from, valid_to, day, expires_at, confidence,
         importance, category, content,
         asserted_by, message_ids, excerpt, method, model, spec_version, reasoning, claim_id, known_as,
         aliases, topics)
    SELECT user_id, tenant_id, avatar_id, assertion_id, session_id, generation, position, said_at, slot,
           value, norm,
           stance, amends, amends_value, valid_from, valid_to, day, expires_at, confidence, importance,
           category, content,
           asserted_by, message_ids, excerpt, method, model, spec_version, reasoning, claim_id, known_as,
           aliases, topics
      FROM json_to_recordset(%(assertions)s::json) AS a
           (user_id uuid, tenant_id text, avatar_id uuid, assertion_id uuid, session_id uuid,
            generation text,
            position int, said_at timestamptz, slot text, value text, norm text, stance text, amends text,
            amends_value text, valid_from timestamptz, valid_to timestamptz, day date, expires_at timestamptz,
            confidence double precision, importance double precision, category text, content text,
            asserted_by text, message_ids text[], excerpt text, method text, model text, spec_version text,
            reasoning text, claim_id uuid, known_as uuid, aliases text[], topics text[])
        ON CONFLICT DO NOTHING
"""

# The first answer of a judge to a pair is the answer.
ADD_JUDGEMENTS: Final[LiteralString] = """
    INSERT INTO lis.judgements
        (user_id, tenant_id, avatar_id, left_claim, right_claim, authority, verdict, merged_text, note,
         left_slot, right_slot, judge)
    SELECT user_id, tenant_id, avatar_id, left_claim, right_claim, authority, verdict, merged_text, note,
           left_slot, right_slot, judge
      FROM json_to_recordset(%(judgements)s::json) AS j
           (user_id uuid, tenant_id text, avatar_id uuid, left_claim uuid, right_claim uuid,
            authority smallint, verdict text, merged_text text, note text, left_slot text, right_slot text,
            judge text)
        ON CONFLICT DO NOTHING
"""

ADD_VECTORS: Final[LiteralString] = """
    INSERT INTO lis.text_vectors (user_id, tenant_id, avatar_id, text_id, model, dimensions, embedding)
    SELECT v.user_id, v.tenant_id, v.avatar_id, v.text_id, v.model, vector_dims(v.embedding), v.embedding
      FROM unnest(%(user_ids)s::uuid[], %(tenant_ids)s::text[], %(avatar_ids)s::uuid[],
      %(text_ids)s::uuid[],
                  %(models)s::text[], %(embeddings)b::halfvec[])
           AS v (user_id, tenant_id, avatar_id, text_id, model, embedding)
        ON CONFLICT DO NOTHING
"""

ADD_WINDOWS: Final[LiteralString] = """
    INSERT INTO lis.session_windows (user_id, tenant_id, avatar_id, session_id, generation, digest,
    candidates)
    SELECT user_id, tenant_id, avatar_id, session_id, generation, digest, candidates
      FROM json_to_recordset(%(windows)s::json) AS w
           (user_id uuid, tenant_id text, avatar_id uuid, session_id uuid, generation text, digest text,
            candidates jsonb)
        ON CONFLICT DO NOTHING
"""

DROP_FACTS: Final[LiteralString] = """
    WITH given AS (
        SELECT *
          FROM json_to_recordset(%(facts)s::json) AS g (tenant_id text, user_id uuid, avatar_id uuid,
          fact_id uuid)
    ), forgotten AS (
        DELETE FROM lis.recall AS r
         USING given AS g
         WHERE r.user_id = g.user_id
           AND r.tenant_id = g.tenant_id
           AND r.avatar_id = g.avatar_id
           AND r.id = g.fact_id
    )
    DELETE FROM lis.memory_facts AS f
     USING given AS g
     WHERE f.user_id = g.user_id
       AND f.tenant_id = g.tenant_id
       AND f.avatar_id = g.avatar_id
       AND f.fact_id = g.fact_id
"""

PUT_FACTS: Final[LiteralString] = """
    INSERT INTO lis.memory_facts AS f
        (fact_id, user_id, avatar_id, category, fact_key, fact_value, confidence, status, source_session_id,
         source_excerpt, dedup_hash, created_at, updated_at, deleted_at, tenant_id, slot, mode, norm,
         content,
         importance, reinforced, first_said_at, last_said_at, valid, expires_at, superseded_by,
         merged_into, names,
         source_message_ids, asserted_by, extraction_method, model, spec_version, reasoning, valid_from,
         valid_to,
         told_status, revision, aliases, topics)
    SELECT fact_id, user_id, avatar_id, category, fact_key, fact_value, confidence, status,
           source_session_id,
           source_excerpt, dedup_hash, created_at, updated_at, deleted_at, tenant_id, slot, mode, norm,
           content,
           importance, reinforced, first_said_at, last_said_at, valid, expires_at, superseded_by,
           merged_into, names,
           source_message_ids, asserted_by, extraction_method, model, spec_version, reasoning, valid_from,
           valid_to,
           told_status, revision, aliases, topics
      FROM json_to_recordset(%(facts)s::json) AS g
           (fact_id uuid, user_id uuid, avatar_id uuid, category text, fact_key text, fact_value text,
            confidence real, status text, source_session_id uuid, source_excerpt text, dedup_hash text,
            created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, tenant_id text,
            slot text,
            mode text, norm text, content text, importance real, reinforced int, first_said_at timestamptz,
            last_said_at timestamptz, valid tstzmultirange, expires_at timestamptz, superseded_by uuid,
            merged_into uuid, names uuid[], source_message_ids text[], asserted_by text,
            extraction_method text,
            model text, spec_version text, reasoning text, valid_from timestamptz, valid_to timestamptz,
            told_status text, revision bigint, aliases text[], topics text[])
        ON CONFLICT (user_id, tenant_id, avatar_id, fact_id) DO UPDATE
       SET category = excluded.category, fact_key = excluded.fact_key, fact_value = excluded.fact_value,
           confidence = excluded.confidence, status = excluded.status,
           source_session_id = excluded.source_session_id, source_excerpt = excluded.source_excerpt,
           dedup_hash = excluded.dedup_hash, updated_at = excluded.updated_at,
           deleted_at = excluded.deleted_at,
           slot = excluded.slot, mode = excluded.mode, norm = excluded.norm, content = excluded.content,
           importance = excluded.importance, reinforced = excluded.reinforced,
           first_said_at = excluded.first_said_at, last_said_at = excluded.last_said_at,
           valid = excluded.valid,
           expires_at = excluded.expires_at, superseded_by = excluded.superseded_by,
           merged_into = excluded.merged_into, names = excluded.names,
           source_message_ids = excluded.source_message_ids, asserted_by = excluded.asserted_by,
           extraction_method = excluded.extraction_method, model = excluded.model,
           spec_version = excluded.spec_version, reasoning = excluded.reasoning,
           valid_from = excluded.valid_from,
           valid_to = excluded.valid_to, told_status = excluded.told_status, revision = excluded.revision,
           aliases = excluded.aliases, topics = excluded.topics
"""

ADD_VERSIONS: Final[LiteralString] = """
    INSERT INTO lis.memory_versions
        (user_id, tenant_id, avatar_id, fact_id, number, revision, change, reason, session_id, job_id,
         fact, at)
    SELECT user_id, tenant_id, avatar_id, fact_id, number, revision, change, reason, session_id, job_id,
           fact, at
      FROM json_to_recordset(%(versions)s::json) AS v
           (user_id uuid, tenant_id text, avatar_id uuid, fact_id uuid, number bigint, revision bigint,
            change text,
            reason text, session_id uuid, job_id uuid, fact jsonb, at timestamptz)
"""

PUT_RECALL: Final[LiteralString] = """
    WITH given AS (
        SELECT *
          FROM json_to_recordset(%(recall)s::json) AS g
               (user_id uuid, tenant_id text, avatar_id uuid, id uuid, status smallint, category text,
                fact_key text, content text, tokens text[], dl int, text_id uuid,
                importance double precision,
                confidence double precision, reinforced int, valid_from timestamptz, expires_at timestamptz,
                topics text[])
    ), hidden AS (
        DELETE FROM lis.recall AS r
         USING given AS g
         WHERE r.user_id = g.user_id
           AND r.tenant_id = g.tenant_id
           AND r.avatar_id = g.avatar_id
           AND r.id = g.id
           AND g.status = 2
    )
    INSERT INTO lis.recall AS r
        (user_id, tenant_id, avatar_id, id, kind, status, category, fact_key, content, dl, tsv, embedding,
         importance, confidence, reinforced, valid_from, expires_at, topics)
    SELECT g.user_id, g.tenant_id, g.avatar_id, g.id, 0, g.status, g.category, g.fact_key, g.content, g.dl,
           array_to_tsvector(g.tokens), v.embedding, g.importance, g.confidence, g.reinforced, g.valid_from,
           g.expires_at, g.topics
      FROM given AS g
      LEFT JOIN LATERAL (
            SELECT t.embedding
              FROM lis.text_vectors AS t
             WHERE t.user_id = g.user_id
               AND t.tenant_id = g.tenant_id
               AND t.avatar_id = g.avatar_id
               AND t.text_id = g.text_id
             ORDER BY (t.model = %(model)s) DESC
             LIMIT 1) AS v ON true
     WHERE g.status <> 2
        ON CONFLICT (user_id, tenant_id, avatar_id, id) DO UPDATE
       SET status = excluded.status, category = excluded.category, fact_key = excluded.fact_key,
           content = excluded.content, dl = excluded.dl, tsv = excluded.tsv, embedding = excluded.embedding,
           importance = excluded.importance, confidence = excluded.confidence,
           reinforced = excluded.reinforced,
           valid_from = excluded.valid_from, expires_at = excluded.expires_at, topics = excluded.topics,
           updated_at = now()
"""

PUT_PENDING: Final[LiteralString] = """
    WITH given AS (
        SELECT *
          FROM json_to_recordset(%(pending)s::json) AS g
               (user_id uuid, tenant_id text, avatar_id uuid, candidate_id uuid, slot text, mode text,
                value text,
                confidence double precision, sessions int, gone boolean)
    ), dropped AS (
        DELETE FROM lis.pending_candidates AS p
         USING given AS g
         WHERE p.user_id = g.user_id
           AND p.tenant_id = g.tenant_id
           AND p.avatar_id = g.avatar_id
           AND p.candidate_id = g.candidate_id
           AND g.gone
    )
    INSERT INTO lis.pending_candidates
        (user_id, tenant_id, avatar_id, candidate_id, slot, mode, value, confidence, sessions)
    SELECT user_id, tenant_id, avatar_id, candidate_id, slot, mode, value, confidence, sessions
      FROM given
     WHERE NOT gone
        ON CONFLICT (user_id, tenant_id, avatar_id, candidate_id) DO UPDATE
       SET slot = excluded.slot, mode = excluded.mode, value = excluded.value,
           confidence = excluded.confidence,
           sessions = excluded.sessions, updated_at = now()
"""

PUT_CLARIFICATIONS: Final[LiteralString] = """
    WITH given AS (
        SELECT *
          FROM json_to_recordset(%(clarifications)s::json) AS g
               (user_id uuid, tenant_id text, avatar_id uuid, clarification_id uuid, slot text,
                current_fact uuid,
                other_fact uuid, gone boolean)
    ), dropped AS (
        DELETE FROM lis.clarifications AS c
         USING given AS g
         WHERE c.user_id = g.user_id
           AND c.tenant_id = g.tenant_id
           AND c.avatar_id = g.avatar_id
           AND c.clarification_id = g.clarification_id
           AND g.gone
    )
    INSERT INTO lis.clarifications
        (user_id, tenant_id, avatar_id, clarification_id, slot, current_fact, other_fact)
    SELECT user_id, tenant_id, avatar_id, clarification_id, slot, current_fact, other_fact
      FROM given
     WHERE NOT gone
        ON CONFLICT (user_id, tenant_id, avatar_id, clarification_id) DO UPDATE
       SET slot = excluded.slot, current_fact = excluded.current_fact, other_fact = excluded.other_fact
"""

PUT_NOTES: Final[LiteralString] = """
    WITH given AS (
        SELECT *
          FROM json_to_recordset(%(notes)s::json) AS g
               (user_id uuid, tenant_id text, avatar_id uuid, older_fact uuid, newer_fact uuid, note text,
                gone boolean)
    ), dropped AS (
        DELETE FROM lis.contradiction_notes AS c
         USING given AS g
         WHERE c.user_id = g.user_id
           AND c.tenant_id = g.tenant_id
           AND c.avatar_id = g.avatar_id
           AND c.older_fact = g.older_fact
           AND c.newer_fact = g.newer_fact
           AND c.note = g.note
           AND g.gone
    )
    INSERT INTO lis.contradiction_notes (user_id, tenant_id, avatar_id, older_fact, newer_fact, note)
    SELECT user_id, tenant_id, avatar_id, older_fact, newer_fact, note
      FROM given
     WHERE NOT gone
        ON CONFLICT DO NOTHING
"""

PUT_SCOPES: Final[LiteralString] = """
    INSERT INTO lis.scopes AS s (user_id, tenant_id, avatar_id, events, revision)
    SELECT user_id, tenant_id, avatar_id, events, 1
      FROM json_to_recordset(%(scopes)s::json) AS g
           (user_id uuid, tenant_id text, avatar_id uuid, events bigint)
        ON CONFLICT (user_id, tenant_id, avatar_id) DO UPDATE
       SET events = excluded.events, revision = s.revision + 1
"""

END_JOBS: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET status = 'completed',
           finished_at = now(),
           next_attempt_at = NULL,
           claimed_until = NULL,
           error = NULL,
           outcome = g.outcome,
           content_digest = decode(g.content_digest, 'hex'),
           replaced_generation = coalesce(g.replaced_generation, j.replaced_generation)
      FROM json_to_recordset(%(jobs)s::json) AS g
           (tenant_id text, user_id uuid, job_id uuid, fence bigint, outcome jsonb, content_digest text,
            replaced_generation text)
     WHERE j.tenant_id = g.tenant_id
       AND j.user_id = g.user_id
       AND j.job_id = g.job_id
       AND j.fence = g.fence
"""

# What judging a session later cost is counted with its job; the job itself has ended.
COUNT_JUDGING: Final[LiteralString] = """
    UPDATE lis.extraction_jobs AS j
       SET outcome = j.outcome || jsonb_build_object(
               'model_calls', (j.outcome ->> 'model_calls')::int + %(model_calls)s::int,
               'questions_asked', coalesce((j.outcome ->> 'questions_asked')::int, 0) + %(asked)s::int,
               'judgements', coalesce((j.outcome ->> 'judgements')::int, 0) + %(judgements)s::int,
               'tokens_in', (j.outcome ->> 'tokens_in')::int + %(tokens_in)s::int,
               'tokens_out', (j.outcome ->> 'tokens_out')::int + %(tokens_out)s::int)
     WHERE j.tenant_id = %(tenant_id)s
       AND j.user_id = %(user_id)s
       AND j.job_id = %(job_id)s
       AND j.outcome IS NOT NULL
    RETURNING j.job_id, j.tenant_id, j.user_id, j.avatar_id, j.session_id, j.generation, j.lane,
              j.traceparent, j.correlation_id, j.finished_at, now() AS now
"""

SERVE: Final[LiteralString] = """
    UPDATE lis.sessions AS s
       SET serving_generation = g.generation, updated_at = now()
      FROM json_to_recordset(%(sessions)s::json) AS g
           (tenant_id text, user_id uuid, session_id uuid, generation text)
     WHERE s.tenant_id = g.tenant_id
       AND s.user_id = g.user_id
       AND s.session_id = g.session_id
"""
