DROP INDEX notifications_due;
CREATE INDEX notifications_due ON notifications (state, due);
ALTER TABLE notifications DROP COLUMN team;
