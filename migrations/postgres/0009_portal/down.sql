DROP INDEX api_keys_by_team;
ALTER TABLE api_keys DROP COLUMN label, DROP COLUMN used_at;
DROP TABLE audit_entries;
DROP TABLE sign_ins;
DROP TABLE recovery_codes;
DROP TABLE users;
