-- For the deletion of sessions, which looks for their rows here.
CREATE INDEX idempotency_keys_by_session ON idempotency_keys (session);
