-- People whom a team has registered, so that its sessions can name them.
CREATE TABLE receivers (
    id         TEXT PRIMARY KEY NOT NULL,
    team       TEXT NOT NULL REFERENCES teams (id),
    name       TEXT,
    email      TEXT,
    phone      TEXT,
    locale     TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX receivers_by_team ON receivers (team, created_at DESC);
