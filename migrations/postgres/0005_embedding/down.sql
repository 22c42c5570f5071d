ALTER TABLE teams DROP COLUMN frame_ancestors;
