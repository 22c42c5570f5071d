-- Keys in people's devices, as a second factor. `passkeys` of a person counts theirs.
ALTER TABLE users ADD COLUMN passkeys INTEGER NOT NULL DEFAULT 0;

CREATE TABLE passkeys (
    id         TEXT PRIMARY KEY NOT NULL,
    person     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    credential BLOB NOT NULL UNIQUE,
    public_key BLOB NOT NULL,
    state      BLOB NOT NULL,
    transports INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;
CREATE INDEX passkeys_by_person ON passkeys (person, created_at);
