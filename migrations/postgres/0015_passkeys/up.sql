-- Keys in people's devices, as a second factor. `passkeys` of a person counts theirs.
ALTER TABLE users ADD COLUMN passkeys integer NOT NULL DEFAULT 0;

CREATE TABLE passkeys (
    id         uuid PRIMARY KEY,
    person     uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       text NOT NULL,
    credential bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    state      bytea NOT NULL,
    transports smallint NOT NULL,
    created_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX passkeys_by_person ON passkeys (person, created_at);
