DROP TABLE idempotency_keys;
DROP TABLE session_events;
DROP INDEX sessions_to_erase;
DROP INDEX sessions_by_status;
ALTER TABLE sessions DROP COLUMN platform, DROP COLUMN erased_at;
ALTER TABLE platforms
    DROP COLUMN display_name, DROP COLUMN description, DROP COLUMN icon, DROP COLUMN login_url;
