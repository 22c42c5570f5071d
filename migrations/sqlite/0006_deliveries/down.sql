CREATE TABLE new_deliveries (
    id          TEXT PRIMARY KEY NOT NULL,
    webhook     TEXT NOT NULL REFERENCES webhooks (id),
    session     TEXT NOT NULL REFERENCES sessions (id),
    body        TEXT NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending',
    UNIQUE (webhook, session)
) STRICT;
INSERT INTO new_deliveries (id, webhook, session, body, attempt, due, state)
    SELECT d.id, d.webhook, d.session, n.body, COALESCE(q.attempts, 0),
           COALESCE(q.due, d.exhausted_at, d.created_at),
           CASE WHEN q.delivery IS NOT NULL THEN 'pending'
                WHEN d.exhausted_at IS NOT NULL THEN 'exhausted' ELSE 'delivered' END
    FROM deliveries d JOIN notices n ON n.id = d.notice
    LEFT JOIN delivery_queue q ON q.delivery = d.id WHERE NOT n.test;
DROP TABLE delivery_queue;
DROP TABLE deliveries;
DROP TABLE notices;
ALTER TABLE new_deliveries RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (due) WHERE state = 'pending';
CREATE TABLE new_attempts (
    delivery    TEXT NOT NULL REFERENCES deliveries (id),
    attempt     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    took_ms     INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    answer      TEXT,
    PRIMARY KEY (delivery, attempt)
) STRICT;
INSERT INTO new_attempts SELECT delivery, attempt, started_at, took_ms, status, error, answer
    FROM delivery_attempts WHERE delivery IN (SELECT id FROM deliveries);
DROP TABLE delivery_attempts;
ALTER TABLE new_attempts RENAME TO delivery_attempts;
DROP TABLE webhook_keys;
ALTER TABLE webhooks DROP COLUMN retiring_secret;
ALTER TABLE webhooks DROP COLUMN retiring_until;
ALTER TABLE webhooks DROP COLUMN failures;
ALTER TABLE webhooks DROP COLUMN failing_since;
ALTER TABLE webhooks DROP COLUMN paused_until;
