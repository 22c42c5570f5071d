DROP TABLE passkeys;
ALTER TABLE users DROP COLUMN passkeys;
