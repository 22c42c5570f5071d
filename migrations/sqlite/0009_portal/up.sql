-- People who use the portal. Passwords are kept as PHC strings, secrets of one-time codes sealed,
-- everything else that opens something as a hash.
CREATE TABLE users (
    id         TEXT PRIMARY KEY NOT NULL,
    team       TEXT NOT NULL REFERENCES teams (id),
    email      TEXT NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    password   TEXT,
    totp       BLOB,
    totp_step  INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX users_by_team ON users (team, email);

CREATE TABLE recovery_codes (
    owner TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    hash  BLOB NOT NULL,
    PRIMARY KEY (owner, hash)
) STRICT;

CREATE TABLE sign_ins (
    id         TEXT PRIMARY KEY NOT NULL,
    person     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token      BLOB NOT NULL UNIQUE,
    passed     INTEGER NOT NULL,
    form_token TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    address    TEXT NOT NULL,
    agent      TEXT NOT NULL
) STRICT;
CREATE INDEX sign_ins_by_person ON sign_ins (person, created_at DESC);
CREATE INDEX sign_ins_to_forget ON sign_ins (expires_at);

-- What was done in the portal. `number` counts a team's entries from 1, `hash` is over the one
-- before and the entry.
CREATE TABLE audit_entries (
    team    TEXT NOT NULL REFERENCES teams (id),
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    address TEXT,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    hash    BLOB NOT NULL,
    PRIMARY KEY (team, number)
) STRICT;

ALTER TABLE api_keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN used_at INTEGER;
CREATE INDEX api_keys_by_team ON api_keys (team, created_at DESC);
