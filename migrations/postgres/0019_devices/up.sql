-- The devices that a session is bound to. `secret` is a keyed hash.
CREATE TABLE session_devices (
    session      uuid NOT NULL REFERENCES sessions (id),
    number       integer NOT NULL,
    secret       bytea NOT NULL,
    joined_by    text NOT NULL,
    joined_at    timestamptz NOT NULL,
    consented    boolean,
    consented_at timestamptz,
    PRIMARY KEY (session, number),
    UNIQUE (session, secret)
);
-- The codes by which one more device may join. `long` and `short` are keyed hashes.
CREATE TABLE join_codes (
    session    uuid NOT NULL REFERENCES sessions (id),
    kind       text NOT NULL,
    long       bytea NOT NULL,
    short      bytea,
    tries      integer NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (session, kind)
);
CREATE INDEX join_codes_by_expiry ON join_codes (expires_at);
