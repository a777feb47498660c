-- A dead letter is open, under way again, or closed; nothing of it changes by that but these columns.
ALTER TABLE lis.dead_letters
    ADD COLUMN status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'redriven', 'closed')),
    ADD COLUMN tenant_id text,
    ADD COLUMN job_id uuid,
    ADD COLUMN redriven_at timestamptz,
    ADD COLUMN closed_at timestamptz;
CREATE INDEX dead_letters_by_time ON lis.dead_letters (first_failed_at, topic, partition, "offset");
CREATE INDEX dead_letters_of_job ON lis.dead_letters (tenant_id, job_id)
    WHERE status = 'redriven' AND job_id IS NOT NULL;

-- The key of most topics begins with the tenant; encode() escapes what is no text instead of failing on it.
UPDATE lis.dead_letters
   SET tenant_id = split_part(encode(key, 'escape'), ':', 1)
 WHERE encode(key, 'escape') ~ '^[ -~]+:'
   AND position('\' IN encode(key, 'escape')) = 0;

-- A job that dead letters were redriven for. Its attempts are orders of their own, so the end of the job, and not
-- of one record, says what became of them.
ALTER TABLE lis.extraction_jobs ADD COLUMN is_redriven boolean NOT NULL DEFAULT false;

CREATE FUNCTION lis.close_dead_letters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lis.dead_letters
       SET status = 'closed', closed_at = now()
     WHERE tenant_id = NEW.tenant_id
       AND job_id = NEW.job_id
       AND status = 'redriven';
    RETURN NULL;
END $$;

CREATE TRIGGER redriven_job_ended AFTER UPDATE OF status ON lis.extraction_jobs FOR EACH ROW
    WHEN (NEW.is_redriven AND NEW.status IN ('completed', 'gated', 'passthrough'))
    EXECUTE FUNCTION lis.close_dead_letters();
