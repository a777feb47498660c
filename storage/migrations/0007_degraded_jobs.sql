-- Jobs that rules did in the place of a model that could not be reached.
CREATE INDEX jobs_degraded ON lis.extraction_jobs (finished_at)
    WHERE status = 'completed' AND (outcome ->> 'degraded')::boolean;
