-- What the statements of the database itself need to know of the installation; written at every migration.
CREATE TABLE lis.installation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    topic_prefix text NOT NULL DEFAULT ''
);
INSERT INTO lis.installation DEFAULT VALUES;

-- A gateway writes the status of a fact; the service says that it is the projection. A delete from outside becomes a
-- retraction of every name of the fact, is found no more from this statement on, and orders a fold of the scope.
CREATE FUNCTION lis.note_soft_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_delete boolean := NEW.status = 'deleted';
    moment timestamptz := clock_timestamp();
BEGIN
    IF current_setting('afterword.projection', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF is_delete THEN
        moment := greatest(coalesce(NEW.deleted_at, moment), OLD.last_said_at);
    ELSE
        -- A clock that runs ahead dated the delete; what lifts it comes after it.
        moment := greatest(moment, greatest(OLD.deleted_at, OLD.last_said_at) + interval '1 microsecond');
    END IF;
    INSERT INTO lis.retractions (user_id, tenant_id, avatar_id, target_claim, kind, at, source)
    SELECT NEW.user_id, NEW.tenant_id, NEW.avatar_id, name,
           CASE WHEN is_delete THEN 'forget' ELSE 'restore' END, moment, 'gateway'
      FROM unnest(NEW.names) AS name;
    IF is_delete THEN
        DELETE FROM lis.recall
         WHERE user_id = NEW.user_id
           AND tenant_id = NEW.tenant_id
           AND avatar_id = NEW.avatar_id
           AND id = NEW.fact_id;
    ELSE
        -- Lifted before any fold told of the delete: the fold has to bring the recallable row back.
        UPDATE lis.memory_facts
           SET told_status = 'deleted'
         WHERE user_id = NEW.user_id
           AND tenant_id = NEW.tenant_id
           AND avatar_id = NEW.avatar_id
           AND fact_id = NEW.fact_id;
    END IF;
    INSERT INTO lis.outbox (topic, key, value, header_names, header_values, tenant_id, user_id)
    SELECT i.topic_prefix || 'extraction.jobs.standard.v1',
           convert_to(NEW.tenant_id || ':' || NEW.user_id, 'UTF8'),
           convert_to(jsonb_build_object(
               'kind', 'fold', 'tenant_id', NEW.tenant_id, 'user_id', NEW.user_id, 'avatar_id', NEW.avatar_id,
               'job_id', gen_random_uuid())::text, 'UTF8'),
           ARRAY['content-type'], ARRAY[convert_to('application/json', 'UTF8')], NEW.tenant_id, NEW.user_id
      FROM lis.installation AS i;
    PERFORM pg_notify('afterword_outbox', '');
    RETURN NULL;
END $$;

CREATE TRIGGER soft_delete AFTER UPDATE OF status ON lis.memory_facts FOR EACH ROW
    WHEN ((OLD.status = 'deleted') IS DISTINCT FROM (NEW.status = 'deleted'))
    EXECUTE FUNCTION lis.note_soft_delete();
