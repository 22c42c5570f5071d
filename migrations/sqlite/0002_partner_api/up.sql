-- What the platforms lookup shows, so that it need not read definitions.
ALTER TABLE platforms ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE platforms ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE platforms ADD COLUMN icon TEXT NOT NULL DEFAULT '';
ALTER TABLE platforms ADD COLUMN login_url TEXT NOT NULL DEFAULT '';
UPDATE platforms SET
    display_name = d.document ->> 'displayName',
    description  = d.document ->> 'description',
    icon         = d.document ->> 'icon',
    login_url    = d.document ->> 'loginUrl'
FROM definitions d WHERE d.platform = platforms.id AND d.version = platforms.version;

ALTER TABLE sessions ADD COLUMN platform INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN erased_at INTEGER;
UPDATE sessions SET platform = terms ->> 'platform';
CREATE INDEX sessions_by_status ON sessions (owner, status, created_at DESC, id DESC);
CREATE INDEX sessions_to_erase ON sessions (closed_at)
    WHERE closed_at IS NOT NULL AND erased_at IS NULL;

CREATE TABLE session_events (
    session    TEXT NOT NULL REFERENCES sessions (id),
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    event      TEXT NOT NULL,
    status     TEXT NOT NULL,
    error_code TEXT,
    PRIMARY KEY (session, version)
) STRICT;

INSERT INTO session_events (session, version, at, event, status)
SELECT id, version, created_at, 'SessionCreated', status FROM sessions;

CREATE TABLE idempotency_keys (
    owner      TEXT NOT NULL REFERENCES api_keys (id),
    key        TEXT NOT NULL,
    request    BLOB NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
