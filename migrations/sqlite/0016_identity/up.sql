-- Whom a provider of identities knows a person as: its address, a blank, and its name for them.
ALTER TABLE users ADD COLUMN subject TEXT;
CREATE UNIQUE INDEX users_by_subject ON users (subject) WHERE subject IS NOT NULL;
