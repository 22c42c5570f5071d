-- `confirmed_at` of a sign-in: when the person last confirmed who they are, beyond having signed in.
-- `held_form`, sealed: what they were about to do when they were asked to confirm.
ALTER TABLE sign_ins ADD COLUMN confirmed_at timestamptz;
ALTER TABLE sign_ins ADD COLUMN by_provider boolean NOT NULL DEFAULT false;
ALTER TABLE sign_ins ADD COLUMN held_form bytea;

-- The browsers in which people have signed in before, by the hash of a token that each was handed.
CREATE TABLE known_browsers (
    person     uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token      bytea NOT NULL,
    used_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (person, token)
);
CREATE INDEX known_browsers_to_forget ON known_browsers (expires_at);

-- The address of somebody who was invited while another team has somebody of that address: `email`
-- is made up then.
ALTER TABLE users ADD COLUMN invited_as text;
CREATE UNIQUE INDEX users_by_invitation ON users (team, invited_as) WHERE invited_as IS NOT NULL;

-- Whether all of a team's people have to have a second factor.
ALTER TABLE teams ADD COLUMN second_factor boolean NOT NULL DEFAULT false;

-- Mails that tell people what happened to their account, until they are sent.
CREATE TABLE account_notices (
    id      uuid PRIMARY KEY,
    person  uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    event   text NOT NULL,
    at      timestamptz NOT NULL,
    address text NOT NULL,
    agent   text NOT NULL,
    due     timestamptz NOT NULL,
    attempt integer NOT NULL DEFAULT 0
);
CREATE INDEX account_notices_due ON account_notices (due);
CREATE INDEX account_notices_by_person ON account_notices (person);
