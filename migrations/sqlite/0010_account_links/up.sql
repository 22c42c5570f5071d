-- Links by which people choose a password, and what became of the mails that bring them. Nothing
-- of a link is kept but its name: the rest is a keyed hash of that. One that was used is gone.
CREATE TABLE account_links (
    id         TEXT PRIMARY KEY NOT NULL,
    person     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose    TEXT NOT NULL,
    state      TEXT NOT NULL,
    reason     TEXT,
    due        INTEGER NOT NULL,
    attempt    INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX account_links_by_person ON account_links (person);
CREATE INDEX account_links_due ON account_links (due) WHERE state = 'queued';
