-- A version that is tried with a share of new sessions.
ALTER TABLE platforms ADD COLUMN canary_version text;
ALTER TABLE platforms ADD COLUMN canary_percent smallint;

-- How many runs of a definition ended in an hour, and in how many of them a signal held, a field was
-- read, and so on. It says nothing about single sessions.
CREATE TABLE definition_statistics (
    platform integer NOT NULL REFERENCES platforms (id),
    version  text NOT NULL,
    hour     timestamptz NOT NULL,
    item     text NOT NULL,
    runs     bigint NOT NULL,
    matches  bigint NOT NULL,
    PRIMARY KEY (platform, version, hour, item)
);
