-- People who use the portal. Passwords are kept as PHC strings, secrets of one-time codes sealed,
-- everything else that opens something as a hash.
CREATE TABLE users (
    id         uuid PRIMARY KEY,
    team       uuid NOT NULL REFERENCES teams (id),
    email      text NOT NULL UNIQUE,
    role       text NOT NULL,
    password   text,
    totp       bytea,
    totp_step  bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL
);
CREATE INDEX users_by_team ON users (team, email);

CREATE TABLE recovery_codes (
    owner uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    hash  bytea NOT NULL,
    PRIMARY KEY (owner, hash)
);

CREATE TABLE sign_ins (
    id         uuid PRIMARY KEY,
    person     uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token      bytea NOT NULL UNIQUE,
    passed     boolean NOT NULL,
    form_token text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    address    text NOT NULL,
    agent      text NOT NULL
);
CREATE INDEX sign_ins_by_person ON sign_ins (person, created_at DESC);
CREATE INDEX sign_ins_to_forget ON sign_ins (expires_at);

-- What was done in the portal. `number` counts a team's entries from 1, `hash` is over the one
-- before and the entry.
CREATE TABLE audit_entries (
    team    uuid NOT NULL REFERENCES teams (id),
    number  bigint NOT NULL,
    at      timestamptz NOT NULL,
    actor   text NOT NULL,
    address text,
    action  text NOT NULL,
    subject text NOT NULL,
    hash    bytea NOT NULL,
    PRIMARY KEY (team, number)
);

ALTER TABLE api_keys
    ADD COLUMN label   text NOT NULL DEFAULT '',
    ADD COLUMN used_at timestamptz;
CREATE INDEX api_keys_by_team ON api_keys (team, created_at DESC);
