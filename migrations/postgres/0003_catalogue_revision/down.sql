DROP TRIGGER catalogue_changed ON platforms;
DROP FUNCTION catalogue_changed();
DROP TABLE catalogue;
