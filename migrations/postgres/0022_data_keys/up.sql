-- Keys that encrypt columns, one or more for each team, wrapped with a key of the deployment. The
-- newest one encrypts. Encrypted values name the key's number, so that numbers are not used twice.
CREATE TABLE data_keys (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team       uuid NOT NULL REFERENCES teams (id),
    wrapped    bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX data_keys_by_team ON data_keys (team, number);
