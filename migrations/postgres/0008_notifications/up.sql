-- Links that are sent to applicants. `number` counts a session's from 1; what the link is sent to
-- stays with the session.
CREATE TABLE notifications (
    id         uuid PRIMARY KEY,
    session    uuid NOT NULL REFERENCES sessions (id),
    number     integer NOT NULL,
    state      text NOT NULL,
    attempt    integer NOT NULL DEFAULT 0,
    due        timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz,
    reason     text,
    UNIQUE (session, number)
);
CREATE INDEX notifications_due ON notifications (state, due);
