DROP INDEX outbox_by_session;
