-- The one row says which `secret.key` this database belongs to. `lasting` is sealed with that key.
CREATE TABLE deployment_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    fingerprint BLOB NOT NULL,
    lasting BLOB NOT NULL
);
