-- For the deletion of sessions, which looks for their rows here.
CREATE INDEX outbox_by_session ON outbox (session);
