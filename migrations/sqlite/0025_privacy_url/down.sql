ALTER TABLE brands DROP COLUMN privacy_url;
