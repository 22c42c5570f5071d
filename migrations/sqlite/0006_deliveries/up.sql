-- Webhooks: the keys that they are for, a secret on its way out, and how their receivers do.
ALTER TABLE webhooks ADD COLUMN retiring_secret BLOB;
ALTER TABLE webhooks ADD COLUMN retiring_until INTEGER;
ALTER TABLE webhooks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since INTEGER;
ALTER TABLE webhooks ADD COLUMN paused_until INTEGER;

CREATE TABLE webhook_keys (
    webhook TEXT NOT NULL REFERENCES webhooks (id),
    key     TEXT NOT NULL REFERENCES api_keys (id),
    PRIMARY KEY (webhook, key)
) STRICT;

-- What is told of a session, once for all who are told.
CREATE TABLE notices (
    id   TEXT PRIMARY KEY NOT NULL,
    test INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
INSERT INTO notices (id, test, body)
    SELECT session, 0, min(body) FROM deliveries GROUP BY session;

-- Attempts no longer refer to deliveries by a constraint.
CREATE TABLE new_attempts (
    delivery    TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    answer      TEXT,
    sent        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (delivery, attempt)
) STRICT;
INSERT INTO new_attempts (delivery, attempt, started_at, took_ms, status, error, answer)
    SELECT delivery, attempt, started_at, took_ms, status, error, answer FROM delivery_attempts;
DROP TABLE delivery_attempts;
ALTER TABLE new_attempts RENAME TO delivery_attempts;

-- Who is told. `session` is one that there is, or was made up for a test. A row is written once and changes only when it is given up on.
ALTER TABLE deliveries RENAME TO old_deliveries;
CREATE TABLE deliveries (
    id           TEXT PRIMARY KEY NOT NULL,
    webhook      TEXT NOT NULL REFERENCES webhooks (id),
    session      TEXT NOT NULL,
    notice       TEXT NOT NULL REFERENCES notices (id),
    created_at   INTEGER NOT NULL,
    exhausted_at INTEGER
) STRICT;
INSERT INTO deliveries (id, webhook, session, notice, created_at, exhausted_at)
    SELECT o.id, o.webhook, o.session, o.session, COALESCE(s.closed_at, s.created_at),
           CASE o.state WHEN 'exhausted' THEN o.due END
    FROM old_deliveries o JOIN sessions s ON s.id = o.session;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, created_at DESC, id DESC);
CREATE INDEX deliveries_by_session ON deliveries (session);
CREATE INDEX deliveries_by_notice ON deliveries (notice);
CREATE INDEX deliveries_by_age ON deliveries (created_at);

-- What is to be sent still.
CREATE TABLE delivery_queue (
    delivery     TEXT PRIMARY KEY NOT NULL REFERENCES deliveries (id),
    webhook      TEXT NOT NULL,
    session      TEXT NOT NULL,
    notice       TEXT NOT NULL,
    since        INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    single       INTEGER NOT NULL DEFAULT 0,
    tries        INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    claim        INTEGER NOT NULL DEFAULT 0,
    leased_until INTEGER
) STRICT;
INSERT INTO delivery_queue
    (delivery, webhook, session, notice, since, due, tries, attempts)
    SELECT o.id, o.webhook, o.session, o.session, COALESCE(s.closed_at, s.created_at), o.due, o.attempt, o.attempt
    FROM old_deliveries o JOIN sessions s ON s.id = o.session WHERE o.state = 'pending';
CREATE INDEX delivery_queue_due ON delivery_queue (webhook, due);
CREATE INDEX delivery_queue_since ON delivery_queue (since);
DROP TABLE old_deliveries;
