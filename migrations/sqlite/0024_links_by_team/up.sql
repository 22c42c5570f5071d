-- The team whose link it is, so that teams take turns. A process of an older version that writes
-- meanwhile leaves the default, which counts as one more team.
ALTER TABLE notifications
    ADD COLUMN team TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
UPDATE notifications
    SET team = (SELECT api_keys.team FROM sessions JOIN api_keys ON api_keys.id = sessions.owner
                WHERE sessions.id = notifications.session)
    WHERE state = 'queued';
DROP INDEX notifications_due;
CREATE INDEX notifications_due ON notifications (team, due) WHERE state = 'queued';
