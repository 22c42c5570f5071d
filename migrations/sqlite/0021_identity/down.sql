DROP TABLE account_notices;
ALTER TABLE teams DROP COLUMN second_factor;
DELETE FROM users WHERE invited_as IS NOT NULL;
DROP INDEX users_by_invitation;
ALTER TABLE users DROP COLUMN invited_as;
DROP TABLE known_browsers;
ALTER TABLE sign_ins DROP COLUMN held_form;
ALTER TABLE sign_ins DROP COLUMN by_provider;
ALTER TABLE sign_ins DROP COLUMN confirmed_at;
