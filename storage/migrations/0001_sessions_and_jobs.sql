CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS lis;

CREATE TABLE lis.tenants (
    tenant_id text PRIMARY KEY,
    plan text NOT NULL DEFAULT 'free' CHECK (plan IN ('enterprise', 'growth', 'starter', 'free')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE lis.proxy_users (
    tenant_id text NOT NULL,
    external_user_id text NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, external_user_id)
);
CREATE INDEX proxy_users_by_user ON lis.proxy_users (user_id, tenant_id);

CREATE TABLE lis.sessions (
    tenant_id text NOT NULL,
    session_id uuid NOT NULL,
    user_id uuid NOT NULL,
    avatar_id uuid NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    message_count int,
    timezone text,
    language text,
    digest bytea,
    revision int NOT NULL DEFAULT 0,
    serving_generation text NOT NULL DEFAULT 'live',
    conflict jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_of_scope ON lis.sessions (user_id, tenant_id, avatar_id, ended_at);

CREATE TABLE lis.chat_messages (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    session_id uuid NOT NULL,
    message_id text NOT NULL,
    position int NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    name text,
    sent_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, session_id, message_id)
) PARTITION BY HASH (user_id);

-- What the windows of a session gave, by the digest of their text: a retry or a revision pays no model twice.
CREATE TABLE lis.session_windows (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    session_id uuid NOT NULL,
    generation text NOT NULL,
    digest text NOT NULL,
    candidates jsonb NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, session_id, generation, digest)
);

CREATE TABLE lis.extraction_jobs (
    tenant_id text NOT NULL,
    job_id uuid NOT NULL,
    user_id uuid NOT NULL,
    avatar_id uuid NOT NULL,
    session_id uuid NOT NULL,
    generation text NOT NULL,
    status text NOT NULL CHECK (status IN
        ('queued', 'gated', 'passthrough', 'conflict', 'running', 'retrying', 'completed', 'dead')),
    revision int NOT NULL DEFAULT 1,
    gate text,
    plan text NOT NULL,
    lane text NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    queued_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    next_attempt_at timestamptz,
    claimed_until timestamptz,
    worker text,
    outcome jsonb,
    error jsonb,
    traceparent text,
    correlation_id text,
    PRIMARY KEY (tenant_id, job_id),
    UNIQUE (tenant_id, session_id, generation)
);
CREATE INDEX jobs_open_of_scope ON lis.extraction_jobs (user_id, tenant_id, avatar_id)
    WHERE status IN ('queued', 'running', 'retrying');
CREATE INDEX jobs_open ON lis.extraction_jobs (queued_at)
    WHERE status IN ('queued', 'running', 'retrying');

CREATE TABLE lis.outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic text NOT NULL,
    key bytea,
    value bytea,
    header_names text[] NOT NULL DEFAULT '{}',
    header_values bytea[] NOT NULL DEFAULT '{}',
    tenant_id text,
    user_id uuid,
    available_at timestamptz NOT NULL DEFAULT now(),
    CHECK (cardinality(header_names) = cardinality(header_values))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE lis.dead_letters (
    topic text NOT NULL,
    partition int NOT NULL,
    "offset" bigint NOT NULL,
    error_class text NOT NULL,
    reason text NOT NULL,
    attempts int NOT NULL,
    key bytea,
    value bytea,
    header_names text[] NOT NULL DEFAULT '{}',
    header_values bytea[] NOT NULL DEFAULT '{}',
    sent_at timestamptz,
    first_failed_at timestamptz NOT NULL DEFAULT now(),
    replays int NOT NULL DEFAULT 0,
    PRIMARY KEY (topic, partition, "offset")
);

-- One row a purpose: which model the stored vectors are of.
CREATE TABLE lis.embedders (
    purpose text PRIMARY KEY,
    model text NOT NULL,
    dimensions int NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now()
);

DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE lis.chat_messages_%s PARTITION OF lis.chat_messages
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
    END LOOP;
END $$;
