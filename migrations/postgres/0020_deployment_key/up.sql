-- The one row says which `secret.key` this database belongs to. `lasting` is sealed with that key.
CREATE TABLE deployment_key (
    id smallint PRIMARY KEY CHECK (id = 1),
    fingerprint bytea NOT NULL,
    lasting bytea NOT NULL
);
