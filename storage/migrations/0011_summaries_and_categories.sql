-- What a long conversation was about; one row a session, for the newest of a scope to be found.
CREATE TABLE lis.conversation_summaries (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    session_id uuid NOT NULL,
    summary text NOT NULL,
    method text NOT NULL CHECK (method IN ('extract', 'llm', 'manual')),
    message_count int NOT NULL,
    ended_at timestamptz NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, session_id)
);
CREATE INDEX summaries_newest ON lis.conversation_summaries (user_id, tenant_id, avatar_id, ended_at DESC);

-- Special categories of data protection law that a tenant allows to be remembered; none unless it says so.
ALTER TABLE lis.tenants ADD COLUMN allowed_categories text[] NOT NULL DEFAULT '{}'
    CHECK (allowed_categories <@ ARRAY['religion', 'political_views', 'ethnic_origin', 'sexual_orientation',
        'trade_union', 'diagnoses', 'medication', 'criminal_record', 'other_health']);
