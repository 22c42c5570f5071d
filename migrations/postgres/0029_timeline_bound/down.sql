DELETE FROM session_events WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = session);
ALTER TABLE session_events
    ADD CONSTRAINT session_events_session_fkey FOREIGN KEY (session) REFERENCES sessions (id),
    DROP CONSTRAINT session_events_bound;
DROP FUNCTION least_session_id(timestamptz);
