-- Films to be made of sessions that ended in ERROR, and how far that has come.
CREATE TABLE recordings (
    session uuid PRIMARY KEY REFERENCES sessions (id),
    state   text NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    due     timestamptz NOT NULL,
    error   text
);
CREATE INDEX recordings_due ON recordings (due) WHERE state IN ('pending', 'in_progress');
