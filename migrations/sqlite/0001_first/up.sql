CREATE TABLE teams (
    id          TEXT PRIMARY KEY NOT NULL,
    name        TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id          TEXT PRIMARY KEY NOT NULL,
    team        TEXT NOT NULL REFERENCES teams (id),
    environment TEXT NOT NULL,
    hash        BLOB NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER
) STRICT;

CREATE TABLE platforms (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    environment TEXT NOT NULL,
    version     TEXT NOT NULL,
    is_active   INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE definitions (
    platform    INTEGER NOT NULL REFERENCES platforms (id),
    version     TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    document    TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (platform, version)
) STRICT;

CREATE TABLE sessions (
    id          TEXT PRIMARY KEY NOT NULL,
    owner       TEXT NOT NULL REFERENCES api_keys (id),
    terms       TEXT NOT NULL,
    state       TEXT NOT NULL,
    status      TEXT NOT NULL,
    progress    INTEGER NOT NULL,
    workflow    TEXT,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    closed_at   INTEGER,
    browser     TEXT,
    alive_until INTEGER
) STRICT;
CREATE INDEX sessions_by_owner ON sessions (owner, created_at DESC, id DESC);
CREATE INDEX sessions_to_expire ON sessions (expires_at) WHERE closed_at IS NULL;
CREATE INDEX sessions_with_browser ON sessions (alive_until) WHERE browser IS NOT NULL;

CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    session     TEXT NOT NULL REFERENCES sessions (id),
    effect      TEXT NOT NULL,
    node        TEXT,
    attempt     INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL,
    buried      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_due ON outbox (due) WHERE NOT buried;

CREATE TABLE webhooks (
    id           TEXT PRIMARY KEY NOT NULL,
    team         TEXT NOT NULL REFERENCES teams (id),
    url          TEXT NOT NULL,
    header_name  TEXT,
    header_value BLOB,
    secret       BLOB NOT NULL,
    timeout_ms   INTEGER NOT NULL,
    retries      INTEGER NOT NULL,
    active       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_team ON webhooks (team);

CREATE TABLE deliveries (
    id          TEXT PRIMARY KEY NOT NULL,
    webhook     TEXT NOT NULL REFERENCES webhooks (id),
    session     TEXT NOT NULL REFERENCES sessions (id),
    body        TEXT NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending',
    UNIQUE (webhook, session)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (due) WHERE state = 'pending';

CREATE TABLE delivery_attempts (
    delivery    TEXT NOT NULL REFERENCES deliveries (id),
    attempt     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    answer      TEXT,
    PRIMARY KEY (delivery, attempt)
) STRICT;
