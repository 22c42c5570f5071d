ALTER TABLE instances DROP COLUMN waiting;
ALTER TABLE instances DROP COLUMN waited;
