-- Commands that were applied, so that one that comes again changes nothing and is answered the same.
CREATE TABLE lis.applied_commands (
    user_id uuid NOT NULL,
    tenant_id text NOT NULL,
    avatar_id uuid NOT NULL,
    command_id uuid NOT NULL,
    kind text NOT NULL,
    fact_id uuid,
    removed int NOT NULL DEFAULT 0,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, tenant_id, command_id)
);
