-- Definitions that authors of a team are writing. The fixture is encrypted.
CREATE TABLE definition_drafts (
    id               TEXT PRIMARY KEY,
    team             TEXT NOT NULL REFERENCES teams (id),
    name             TEXT NOT NULL,
    platform_version TEXT NOT NULL,
    document         TEXT NOT NULL,
    fixture          TEXT,
    revision         INTEGER NOT NULL,
    updated_by       TEXT NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX definition_drafts_by_team ON definition_drafts (team, updated_at DESC, id);
