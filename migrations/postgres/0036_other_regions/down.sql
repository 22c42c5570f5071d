ALTER TABLE instances DROP COLUMN leaving;
ALTER TABLE teams DROP COLUMN other_regions;
