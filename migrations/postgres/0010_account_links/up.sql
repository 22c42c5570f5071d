-- Links by which people choose a password, and what became of the mails that bring them. Nothing
-- of a link is kept but its name: the rest is a keyed hash of that. One that was used is gone.
CREATE TABLE account_links (
    id         uuid PRIMARY KEY,
    person     uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose    text NOT NULL,
    state      text NOT NULL,
    reason     text,
    due        timestamptz NOT NULL,
    attempt    integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX account_links_by_person ON account_links (person);
CREATE INDEX account_links_due ON account_links (due) WHERE state = 'queued';
