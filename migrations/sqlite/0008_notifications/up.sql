-- Links that are sent to applicants. `number` counts a session's from 1; what the link is sent to
-- stays with the session.
CREATE TABLE notifications (
    id         TEXT PRIMARY KEY NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id),
    number     INTEGER NOT NULL,
    state      TEXT NOT NULL,
    attempt    INTEGER NOT NULL DEFAULT 0,
    due        INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    reason     TEXT,
    UNIQUE (session, number)
) STRICT;
CREATE INDEX notifications_due ON notifications (state, due);
