-- The running processes of the deployment, as they report themselves.
CREATE TABLE instances (
    id          TEXT PRIMARY KEY,
    address     TEXT NOT NULL,
    region      TEXT,
    slots       INTEGER NOT NULL,
    sessions    INTEGER NOT NULL,
    draining    INTEGER NOT NULL,
    reports     INTEGER NOT NULL
) STRICT;
