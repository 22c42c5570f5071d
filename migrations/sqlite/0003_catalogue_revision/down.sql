DROP TRIGGER platform_removed;
DROP TRIGGER platform_changed;
DROP TRIGGER platform_added;
DROP TABLE catalogue;
