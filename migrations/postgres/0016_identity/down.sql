DROP INDEX users_by_subject;
ALTER TABLE users DROP COLUMN subject;
