-- How many sessions each key had before a moment, so that a list counts only those after it. `counted_at` is
-- when a process last looked, `restarted_at` when it last counted from the beginning.
CREATE TABLE session_counts (
    owner        TEXT PRIMARY KEY REFERENCES api_keys ON DELETE CASCADE,
    before       INTEGER NOT NULL,
    counted_at   INTEGER NOT NULL,
    restarted_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_totals (
    owner    TEXT    NOT NULL REFERENCES session_counts ON DELETE CASCADE,
    status   TEXT    NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (owner, status)
) STRICT;
