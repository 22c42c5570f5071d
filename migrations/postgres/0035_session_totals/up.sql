-- How many sessions each key had before a moment, so that a list counts only those after it. `counted_at` is
-- when a process last looked, `restarted_at` when it last counted from the beginning.
CREATE TABLE session_counts (
    owner        uuid PRIMARY KEY REFERENCES api_keys ON DELETE CASCADE,
    before       timestamptz NOT NULL,
    counted_at   timestamptz NOT NULL,
    restarted_at timestamptz NOT NULL
);
CREATE TABLE session_totals (
    owner    uuid   NOT NULL REFERENCES session_counts ON DELETE CASCADE,
    status   text   NOT NULL,
    sessions bigint NOT NULL,
    PRIMARY KEY (owner, status)
);
