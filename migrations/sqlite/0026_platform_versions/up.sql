-- A version that is tried with a share of new sessions.
ALTER TABLE platforms ADD COLUMN canary_version TEXT;
ALTER TABLE platforms ADD COLUMN canary_percent INTEGER;

-- How many runs of a definition ended in an hour, and in how many of them a signal held, a field was
-- read, and so on. It says nothing about single sessions.
CREATE TABLE definition_statistics (
    platform INTEGER NOT NULL REFERENCES platforms (id),
    version  TEXT NOT NULL,
    hour     INTEGER NOT NULL,
    item     TEXT NOT NULL,
    runs     INTEGER NOT NULL,
    matches  INTEGER NOT NULL,
    PRIMARY KEY (platform, version, hour, item)
) STRICT;
