-- Origins that may show a team's sessions, with spaces between; none: any.
ALTER TABLE teams ADD COLUMN frame_ancestors TEXT NOT NULL DEFAULT '';
