-- Whether sessions of a team may have their browsers in another region while their own is full, and how many
-- of the sessions that wait at an instance may. Processes of the release before leave both at nothing.
ALTER TABLE teams ADD COLUMN other_regions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN leaving integer NOT NULL DEFAULT 0;
