-- avouch:concurrently
-- For the deletion of sessions, which looks for their rows here.
DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_by_session;
CREATE INDEX CONCURRENTLY idempotency_keys_by_session ON idempotency_keys (session);
