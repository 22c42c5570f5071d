-- People whom a team has registered, so that its sessions can name them.
CREATE TABLE receivers (
    id         uuid PRIMARY KEY,
    team       uuid NOT NULL REFERENCES teams (id),
    name       text,
    email      text,
    phone      text,
    locale     text,
    created_at timestamptz NOT NULL
);
CREATE INDEX receivers_by_team ON receivers (team, created_at DESC);
