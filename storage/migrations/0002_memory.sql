CREATE TABLE lis.assertions (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    assertion_id uuid NOT NULL,
    session_id uuid NOT NULL,
    generation text NOT NULL,
    position int NOT NULL,
    said_at timestamptz NOT NULL,
    slot text NOT NULL,
    value text NOT NULL,
    norm text NOT NULL,
    stance text NOT NULL CHECK (stance IN ('holds', 'denies', 'held', 'plans', 'forgets')),
    amends text CHECK (amends IN ('also', 'instead_of', 'corrects', 'corrects_everywhere')),
    amends_value text,
    valid_from timestamptz,
    valid_to timestamptz,
    day date,
    expires_at timestamptz,
    confidence double precision NOT NULL,
    importance double precision NOT NULL,
    category text NOT NULL,
    content text NOT NULL,
    asserted_by text NOT NULL,
    message_ids text[] NOT NULL,
    excerpt text NOT NULL,
    method text NOT NULL,
    model text,
    spec_version text,
    reasoning text NOT NULL,
    claim_id uuid NOT NULL,
    known_as uuid,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, assertion_id)
) PARTITION BY HASH (user_id);
CREATE INDEX assertions_of_slot ON lis.assertions (user_id, tenant_id, avatar_id, slot);
CREATE INDEX assertions_of_session ON lis.assertions (user_id, tenant_id, session_id, generation);

-- Ids only: the texts are in the assertions and go with them.
CREATE TABLE lis.judgements (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    left_claim uuid NOT NULL,
    right_claim uuid NOT NULL,
    authority smallint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('same', 'rivals', 'compatible', 'merge')),
    merged_text text,
    note text NOT NULL DEFAULT '',
    left_slot text NOT NULL,
    right_slot text NOT NULL,
    judge text NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, left_claim, right_claim, authority),
    CHECK (left_claim <> right_claim),
    CHECK ((verdict = 'merge') = (merged_text IS NOT NULL))
);
CREATE INDEX judgements_of_left_slot ON lis.judgements (user_id, tenant_id, avatar_id, left_slot);
CREATE INDEX judgements_of_right_slot ON lis.judgements (user_id, tenant_id, avatar_id, right_slot);

CREATE TABLE lis.slot_links (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    left_slot text NOT NULL,
    right_slot text NOT NULL,
    authority smallint NOT NULL,
    same boolean NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, left_slot, right_slot, authority),
    CHECK (left_slot <> right_slot)
);
CREATE INDEX slot_links_of_right_slot ON lis.slot_links (user_id, tenant_id, avatar_id, right_slot);

CREATE TABLE lis.retractions (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    retraction_id uuid NOT NULL DEFAULT gen_random_uuid(),
    command_id uuid,
    target_claim uuid,
    target_slot text,
    kind text NOT NULL CHECK (kind IN ('forget', 'disown', 'restore')),
    at timestamptz NOT NULL,
    source text NOT NULL,
    PRIMARY KEY (user_id, tenant_id, avatar_id, retraction_id),
    CHECK (num_nonnulls(target_claim, target_slot) = 1)
);

-- A vector belongs to a text, so a rebuild embeds nothing.
CREATE TABLE lis.text_vectors (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    text_id uuid NOT NULL,
    model text NOT NULL,
    dimensions int NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (user_id, tenant_id, avatar_id, text_id, model)
);

CREATE TABLE lis.memory_facts (
    fact_id uuid NOT NULL,
    user_id uuid NOT NULL,
    avatar_id uuid NOT NULL,
    category text NOT NULL,
    fact_key text NOT NULL,
    fact_value text NOT NULL,
    confidence real NOT NULL,
    status text NOT NULL CHECK (status IN ('active', 'superseded', 'deleted', 'expired')),
    source_session_id uuid,
    source_excerpt text,
    dedup_hash text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz,
    deleted_at timestamptz,
    tenant_id text NOT NULL,
    slot text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('holds', 'denies', 'plans')),
    norm text NOT NULL,
    content text NOT NULL,
    importance real NOT NULL,
    reinforced int NOT NULL,
    first_said_at timestamptz NOT NULL,
    last_said_at timestamptz NOT NULL,
    valid tstzmultirange NOT NULL,
    expires_at timestamptz,
    superseded_by uuid,
    merged_into uuid,
    names uuid[] NOT NULL,
    source_message_ids text[] NOT NULL DEFAULT '{}',
    asserted_by text NOT NULL DEFAULT 'user',
    extraction_method text NOT NULL DEFAULT 'llm',
    model text,
    spec_version text,
    reasoning text NOT NULL DEFAULT '',
    valid_from timestamptz,
    valid_to timestamptz,
    told_status text,
    revision bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (user_id, tenant_id, avatar_id, fact_id)
) PARTITION BY HASH (user_id);
CREATE INDEX facts_by_id ON lis.memory_facts (fact_id);
CREATE INDEX facts_of_slot ON lis.memory_facts (user_id, tenant_id, avatar_id, slot);
CREATE INDEX facts_ranked ON lis.memory_facts
    (user_id, tenant_id, avatar_id, confidence DESC, last_said_at DESC, fact_id)
    WHERE status = 'active' AND merged_into IS NULL;
CREATE INDEX facts_listed ON lis.memory_facts (user_id, tenant_id, avatar_id, last_said_at DESC, fact_id DESC);

CREATE TABLE lis.memory_versions (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    fact_id uuid NOT NULL,
    number bigint NOT NULL,
    revision bigint NOT NULL,
    change text NOT NULL,
    reason text NOT NULL,
    session_id uuid,
    job_id uuid,
    fact jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, fact_id, number)
);

CREATE TABLE lis.scopes (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    events bigint NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    projection_version int NOT NULL DEFAULT 1,
    PRIMARY KEY (user_id, tenant_id, avatar_id)
);

CREATE TABLE lis.pending_candidates (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    candidate_id uuid NOT NULL,
    slot text NOT NULL,
    mode text NOT NULL,
    value text NOT NULL,
    confidence double precision NOT NULL,
    sessions int NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, candidate_id)
);
CREATE INDEX pending_of_slot ON lis.pending_candidates (user_id, tenant_id, avatar_id, slot);

CREATE TABLE lis.clarifications (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    clarification_id uuid NOT NULL,
    slot text NOT NULL,
    current_fact uuid NOT NULL,
    other_fact uuid NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, clarification_id)
);
CREATE INDEX clarifications_of_slot ON lis.clarifications (user_id, tenant_id, avatar_id, slot);

CREATE TABLE lis.contradiction_notes (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    older_fact uuid NOT NULL,
    newer_fact uuid NOT NULL,
    note text NOT NULL,
    found_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, older_fact, newer_fact, note)
);

-- What can be found: facts and messages under their words. Written with its cause, searched by one index-only scan.
CREATE TABLE lis.recall (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    id uuid NOT NULL,
    kind smallint NOT NULL,
    status smallint NOT NULL DEFAULT 0,
    category text,
    fact_key text,
    content text NOT NULL,
    session_id uuid,
    dl int NOT NULL,
    tsv tsvector NOT NULL,
    embedding halfvec,
    wide boolean NOT NULL GENERATED ALWAYS AS (coalesce(vector_dims(embedding), 0) > 768) STORED,
    importance double precision,
    confidence double precision,
    reinforced int,
    valid_from timestamptz,
    expires_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, avatar_id, id)
) PARTITION BY HASH (user_id);
ALTER TABLE lis.recall ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX recall_of_session ON lis.recall (user_id, tenant_id, session_id) WHERE session_id IS NOT NULL;
-- An entry of a b-tree holds 2,704 bytes; a vector of more than 768 numbers would leave no room for the words.
CREATE INDEX recall_search ON lis.recall (user_id, tenant_id, avatar_id)
    INCLUDE (id, kind, embedding, dl, tsv, expires_at, importance, confidence, reinforced, valid_from, category)
    WHERE status = 0 AND NOT wide;

-- Room in every page of the facts, so that a stamp of last_seen_at moves no index entry.
DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format('CREATE TABLE lis.assertions_%s PARTITION OF lis.assertions
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
        EXECUTE format('CREATE TABLE lis.memory_facts_%s PARTITION OF lis.memory_facts
            FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = 85)', n, n);
        EXECUTE format('CREATE TABLE lis.recall_%s PARTITION OF lis.recall
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
    END LOOP;
END $$;
