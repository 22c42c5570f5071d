-- What the platforms lookup shows, so that it need not read definitions.
ALTER TABLE platforms
    ADD COLUMN display_name text NOT NULL DEFAULT '',
    ADD COLUMN description  text NOT NULL DEFAULT '',
    ADD COLUMN icon         text NOT NULL DEFAULT '',
    ADD COLUMN login_url    text NOT NULL DEFAULT '';
UPDATE platforms SET
    display_name = d.document::json ->> 'displayName',
    description  = d.document::json ->> 'description',
    icon         = d.document::json ->> 'icon',
    login_url    = d.document::json ->> 'loginUrl'
FROM definitions d WHERE d.platform = platforms.id AND d.version = platforms.version;

ALTER TABLE sessions
    ADD COLUMN platform  integer REFERENCES platforms (id),
    ADD COLUMN erased_at timestamptz;
UPDATE sessions SET platform = (terms::json ->> 'platform')::integer;
ALTER TABLE sessions ALTER COLUMN platform SET NOT NULL;
CREATE INDEX sessions_by_status ON sessions (owner, status, created_at DESC, id DESC);
CREATE INDEX sessions_to_erase ON sessions (closed_at)
    WHERE closed_at IS NOT NULL AND erased_at IS NULL;

CREATE TABLE session_events (
    session    uuid NOT NULL REFERENCES sessions (id),
    version    integer NOT NULL,
    at         timestamptz NOT NULL,
    event      text NOT NULL,
    status     text NOT NULL,
    error_code text,
    PRIMARY KEY (session, version)
);

INSERT INTO session_events (session, version, at, event, status)
SELECT id, version, created_at, 'SessionCreated', status FROM sessions;

CREATE TABLE idempotency_keys (
    owner      uuid NOT NULL REFERENCES api_keys (id),
    key        text NOT NULL,
    request    bytea NOT NULL,
    session    uuid NOT NULL REFERENCES sessions (id),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
