-- What the partner calls a session, to look it up by.
ALTER TABLE sessions ADD COLUMN reference text;
UPDATE sessions SET reference = terms::json ->> 'external_reference';
CREATE INDEX sessions_by_reference ON sessions (reference) WHERE reference IS NOT NULL;
