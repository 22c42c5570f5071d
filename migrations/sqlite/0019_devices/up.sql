-- The devices that a session is bound to. `secret` is a keyed hash.
CREATE TABLE session_devices (
    session      TEXT NOT NULL REFERENCES sessions (id),
    number       INTEGER NOT NULL,
    secret       BLOB NOT NULL,
    joined_by    TEXT NOT NULL,
    joined_at    INTEGER NOT NULL,
    consented    INTEGER,
    consented_at INTEGER,
    PRIMARY KEY (session, number),
    UNIQUE (session, secret)
) STRICT;
-- The codes by which one more device may join. `long` and `short` are keyed hashes.
CREATE TABLE join_codes (
    session    TEXT NOT NULL REFERENCES sessions (id),
    kind       TEXT NOT NULL,
    long       BLOB NOT NULL,
    short      BLOB,
    tries      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (session, kind)
) STRICT;
CREATE INDEX join_codes_by_expiry ON join_codes (expires_at);
