-- Films to be made of sessions that ended in ERROR, and how far that has come.
CREATE TABLE recordings (
    session TEXT PRIMARY KEY NOT NULL REFERENCES sessions (id),
    state   TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    due     INTEGER NOT NULL,
    error   TEXT
) STRICT;
CREATE INDEX recordings_due ON recordings (due) WHERE state IN ('pending', 'in_progress');
