-- How many sessions wait for a browser of an instance, and for how many seconds the first one has waited.
-- Processes of the release before leave both at 0.
ALTER TABLE instances
    ADD COLUMN waiting integer NOT NULL DEFAULT 0,
    ADD COLUMN waited  integer NOT NULL DEFAULT 0;
