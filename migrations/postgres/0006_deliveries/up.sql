-- Webhooks: the keys that they are for, a secret on its way out, and how their receivers do.
ALTER TABLE webhooks
    ADD COLUMN retiring_secret bytea,
    ADD COLUMN retiring_until  timestamptz,
    ADD COLUMN failures        integer NOT NULL DEFAULT 0,
    ADD COLUMN failing_since   timestamptz,
    ADD COLUMN paused_until    timestamptz;

CREATE TABLE webhook_keys (
    webhook uuid NOT NULL REFERENCES webhooks (id),
    key     uuid NOT NULL REFERENCES api_keys (id),
    PRIMARY KEY (webhook, key)
);

-- What is told of a session, once for all who are told.
CREATE TABLE notices (
    id   uuid PRIMARY KEY,
    test boolean NOT NULL,
    body text NOT NULL
);
INSERT INTO notices (id, test, body)
    SELECT DISTINCT ON (session) session, false, body FROM deliveries;

-- Who is told. `session` is one that there is, or was made up for a test. A row is written once and changes only when it is given up on.
ALTER TABLE delivery_attempts DROP CONSTRAINT delivery_attempts_delivery_fkey;
ALTER TABLE deliveries RENAME TO old_deliveries;
ALTER INDEX deliveries_pkey RENAME TO old_deliveries_pkey;
CREATE TABLE deliveries (
    id           uuid PRIMARY KEY,
    webhook      uuid NOT NULL REFERENCES webhooks (id),
    session      uuid NOT NULL,
    notice       uuid NOT NULL REFERENCES notices (id),
    created_at   timestamptz NOT NULL,
    exhausted_at timestamptz
);
INSERT INTO deliveries (id, webhook, session, notice, created_at, exhausted_at)
    SELECT o.id, o.webhook, o.session, o.session, COALESCE(s.closed_at, s.created_at),
           CASE o.state WHEN 'exhausted' THEN o.due END
    FROM old_deliveries o JOIN sessions s ON s.id = o.session;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, created_at DESC, id DESC);
CREATE INDEX deliveries_by_session ON deliveries (session);
CREATE INDEX deliveries_by_notice ON deliveries (notice);
CREATE INDEX deliveries_by_age ON deliveries (created_at);

-- What is to be sent still. Rows come and go quickly, so room for changes in place and a tidy-up
-- that does not wait for a fifth of the table.
CREATE TABLE delivery_queue (
    delivery     uuid PRIMARY KEY REFERENCES deliveries (id),
    webhook      uuid NOT NULL,
    session      uuid NOT NULL,
    notice       uuid NOT NULL,
    since        timestamptz NOT NULL,
    due          timestamptz NOT NULL,
    single       boolean NOT NULL DEFAULT false,
    tries        integer NOT NULL DEFAULT 0,
    attempts     integer NOT NULL DEFAULT 0,
    claim        integer NOT NULL DEFAULT 0,
    leased_until timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);
INSERT INTO delivery_queue
    (delivery, webhook, session, notice, since, due, tries, attempts)
    SELECT o.id, o.webhook, o.session, o.session, COALESCE(s.closed_at, s.created_at), o.due, o.attempt, o.attempt
    FROM old_deliveries o JOIN sessions s ON s.id = o.session WHERE o.state = 'pending';
CREATE INDEX delivery_queue_due ON delivery_queue (webhook, due);
CREATE INDEX delivery_queue_since ON delivery_queue (since);
DROP TABLE old_deliveries;

ALTER TABLE delivery_attempts ADD COLUMN sent text NOT NULL DEFAULT '';
