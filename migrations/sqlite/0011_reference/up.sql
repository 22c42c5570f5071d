-- What the partner calls a session, to look it up by.
ALTER TABLE sessions ADD COLUMN reference TEXT;
UPDATE sessions SET reference = json_extract(terms, '$.external_reference');
CREATE INDEX sessions_by_reference ON sessions (reference) WHERE reference IS NOT NULL;
