DROP TABLE definition_statistics;
ALTER TABLE platforms DROP COLUMN canary_percent;
ALTER TABLE platforms DROP COLUMN canary_version;
