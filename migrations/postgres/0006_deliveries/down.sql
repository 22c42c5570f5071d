ALTER TABLE delivery_attempts DROP COLUMN sent;
CREATE TABLE new_deliveries (
    id          uuid PRIMARY KEY,
    webhook     uuid NOT NULL REFERENCES webhooks (id),
    session     uuid NOT NULL REFERENCES sessions (id),
    body        text NOT NULL,
    attempt     integer NOT NULL DEFAULT 0,
    due         timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'pending',
    UNIQUE (webhook, session)
);
INSERT INTO new_deliveries (id, webhook, session, body, attempt, due, state)
    SELECT d.id, d.webhook, d.session, n.body, COALESCE(q.attempts, 0),
           COALESCE(q.due, d.exhausted_at, d.created_at),
           CASE WHEN q.delivery IS NOT NULL THEN 'pending'
                WHEN d.exhausted_at IS NOT NULL THEN 'exhausted' ELSE 'delivered' END
    FROM deliveries d JOIN notices n ON n.id = d.notice
    LEFT JOIN delivery_queue q ON q.delivery = d.id WHERE NOT n.test;
DELETE FROM delivery_attempts WHERE delivery NOT IN (SELECT id FROM new_deliveries);
DROP TABLE delivery_queue;
DROP TABLE deliveries;
DROP TABLE notices;
ALTER TABLE new_deliveries RENAME TO deliveries;
ALTER INDEX new_deliveries_pkey RENAME TO deliveries_pkey;
ALTER TABLE deliveries
    RENAME CONSTRAINT new_deliveries_webhook_session_key TO deliveries_webhook_session_key;
ALTER TABLE deliveries
    RENAME CONSTRAINT new_deliveries_webhook_fkey TO deliveries_webhook_fkey;
ALTER TABLE deliveries
    RENAME CONSTRAINT new_deliveries_session_fkey TO deliveries_session_fkey;
CREATE INDEX deliveries_due ON deliveries (due) WHERE state = 'pending';
ALTER TABLE delivery_attempts ADD CONSTRAINT delivery_attempts_delivery_fkey
    FOREIGN KEY (delivery) REFERENCES deliveries (id);
DROP TABLE webhook_keys;
ALTER TABLE webhooks
    DROP COLUMN retiring_secret,
    DROP COLUMN retiring_until,
    DROP COLUMN failures,
    DROP COLUMN failing_since,
    DROP COLUMN paused_until;
