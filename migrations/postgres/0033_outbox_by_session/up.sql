-- avouch:concurrently
-- For the deletion of sessions, which looks for their rows here.
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_session;
CREATE INDEX CONCURRENTLY outbox_by_session ON outbox (session);
