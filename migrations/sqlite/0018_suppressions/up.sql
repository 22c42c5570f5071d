-- Who wants no more mails of a team's. `mark` is a keyed hash of the address.
CREATE TABLE suppressions (
    team       TEXT NOT NULL REFERENCES teams (id),
    mark       BLOB NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (team, mark)
) STRICT;
