-- Definitions that authors of a team are writing. The fixture is encrypted.
CREATE TABLE definition_drafts (
    id               uuid PRIMARY KEY,
    team             uuid NOT NULL REFERENCES teams (id),
    name             text NOT NULL,
    platform_version text NOT NULL,
    document         text NOT NULL,
    fixture          text,
    revision         integer NOT NULL,
    updated_by       text NOT NULL,
    updated_at       timestamptz NOT NULL
);
CREATE INDEX definition_drafts_by_team ON definition_drafts (team, updated_at DESC, id);
