-- Teams' own wordings of the mail that brings a link.
CREATE TABLE email_templates (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    team       TEXT NOT NULL REFERENCES teams (id),
    name       TEXT NOT NULL,
    language   TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    status     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    is_default INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX email_templates_by_team ON email_templates (team);
CREATE INDEX email_templates_submitted ON email_templates (updated_at) WHERE status = 'SUBMITTED';
CREATE UNIQUE INDEX email_templates_default ON email_templates (team, language) WHERE is_default;
