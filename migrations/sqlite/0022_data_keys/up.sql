-- Keys that encrypt columns, one or more for each team, wrapped with a key of the deployment. The
-- newest one encrypts. Encrypted values name the key's number, so that numbers are not used twice.
CREATE TABLE data_keys (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    team       TEXT NOT NULL REFERENCES teams (id),
    wrapped    BLOB NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (unixepoch() * 1000000)
) STRICT;
CREATE INDEX data_keys_by_team ON data_keys (team, number);
