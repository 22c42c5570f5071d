-- The workflow's node at which a session failed.
ALTER TABLE session_events ADD COLUMN node text;
