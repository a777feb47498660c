-- How often in a row a job was taken from a worker that neither ended it nor gave it back.
ALTER TABLE lis.extraction_jobs ADD COLUMN takeovers int NOT NULL DEFAULT 0;
