-- `confirmed_at` of a sign-in: when the person last confirmed who they are, beyond having signed in.
-- `held_form`, sealed: what they were about to do when they were asked to confirm.
ALTER TABLE sign_ins ADD COLUMN confirmed_at INTEGER;
ALTER TABLE sign_ins ADD COLUMN by_provider INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sign_ins ADD COLUMN held_form BLOB;

-- The browsers in which people have signed in before, by the hash of a token that each was handed.
CREATE TABLE known_browsers (
    person     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token      BLOB NOT NULL,
    used_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (person, token)
) STRICT;
CREATE INDEX known_browsers_to_forget ON known_browsers (expires_at);

-- The address of somebody who was invited while another team has somebody of that address: `email`
-- is made up then.
ALTER TABLE users ADD COLUMN invited_as TEXT;
CREATE UNIQUE INDEX users_by_invitation ON users (team, invited_as) WHERE invited_as IS NOT NULL;

-- Whether all of a team's people have to have a second factor.
ALTER TABLE teams ADD COLUMN second_factor INTEGER NOT NULL DEFAULT 0;

-- Mails that tell people what happened to their account, until they are sent.
CREATE TABLE account_notices (
    id      TEXT PRIMARY KEY NOT NULL,
    person  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    event   TEXT NOT NULL,
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,
    agent   TEXT NOT NULL,
    due     INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX account_notices_due ON account_notices (due);
CREATE INDEX account_notices_by_person ON account_notices (person);
