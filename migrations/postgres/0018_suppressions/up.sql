-- Who wants no more mails of a team's. `mark` is a keyed hash of the address.
CREATE TABLE suppressions (
    team       uuid NOT NULL REFERENCES teams (id),
    mark       bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (team, mark)
);
