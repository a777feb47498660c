-- How many jobs of a tenant run at once; unset, what the service is set to.
ALTER TABLE lis.tenants ADD COLUMN slots int CHECK (slots BETWEEN 1 AND 100000);

-- Counts the running and the waiting jobs of one tenant.
CREATE INDEX jobs_open_of_tenant ON lis.extraction_jobs (tenant_id, status, (lane = 'replay'))
    WHERE status IN ('queued', 'running', 'retrying');

-- What is due at once and what is due later are read apart, so that many rows that wait for their time are
-- not passed over in each turn.
ALTER TABLE lis.outbox ADD COLUMN written_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX outbox_at_once ON lis.outbox (id) WHERE available_at <= written_at;
CREATE INDEX outbox_later ON lis.outbox (available_at) WHERE available_at > written_at;
