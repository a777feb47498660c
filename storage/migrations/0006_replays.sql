-- A run of history through the service again. Its id is also the label of the generation that it fills, unless it
-- fills the live one.
CREATE TABLE lis.replays (
    replay_id text PRIMARY KEY CHECK (replay_id ~ '^[a-z0-9][a-z0-9-]{0,62}$' AND replay_id <> 'live'),
    generation text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('fill', 'reprocess', 'shadow')),
    status text NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'paused', 'done', 'promoting', 'promoted', 'discarded')),
    source jsonb NOT NULL,
    rate double precision CHECK (rate > 0),
    total bigint,
    position jsonb,
    published bigint NOT NULL DEFAULT 0,
    skipped jsonb NOT NULL DEFAULT '{}',
    feeder uuid,
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CHECK ((mode = 'fill') = (generation = 'live'))
);

-- Which replay ordered a job; whether its generation begins to serve when it commits, or stays unseen; what the
-- session said when the job read it; and what its generation took the place of.
ALTER TABLE lis.extraction_jobs
    ADD COLUMN replay_id text,
    ADD COLUMN replay_mode text CHECK (replay_mode IN ('fill', 'reprocess', 'shadow')),
    ADD COLUMN content_digest bytea,
    ADD COLUMN replaced_generation text;
CREATE INDEX jobs_of_replay ON lis.extraction_jobs (replay_id, status) WHERE replay_id IS NOT NULL;
CREATE INDEX jobs_of_generation ON lis.extraction_jobs (generation, user_id) WHERE generation <> 'live';

-- The order in which stored sessions are replayed.
CREATE INDEX sessions_by_end ON lis.sessions (ended_at, tenant_id, session_id) WHERE ended_at IS NOT NULL;
