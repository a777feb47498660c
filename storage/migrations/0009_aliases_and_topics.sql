-- Other names of a thing and the topics that a fact belongs to, as somebody stored them with the fact.
ALTER TABLE lis.assertions
    ADD COLUMN aliases text[] NOT NULL DEFAULT '{}',
    ADD COLUMN topics text[] NOT NULL DEFAULT '{}';
ALTER TABLE lis.memory_facts
    ADD COLUMN aliases text[] NOT NULL DEFAULT '{}',
    ADD COLUMN topics text[] NOT NULL DEFAULT '{}';
ALTER TABLE lis.recall ADD COLUMN topics text[] NOT NULL DEFAULT '{}';
