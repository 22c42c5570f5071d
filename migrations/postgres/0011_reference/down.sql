DROP INDEX sessions_by_reference;
ALTER TABLE sessions DROP COLUMN reference;
