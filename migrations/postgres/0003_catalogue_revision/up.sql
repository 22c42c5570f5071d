-- Another number after each change to a platform, whoever makes it, so that who keeps an answer
-- made of platforms can tell whether it still holds.
CREATE TABLE catalogue (
    id       integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    revision bigint NOT NULL
);
INSERT INTO catalogue (revision) VALUES (1);

CREATE FUNCTION catalogue_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE catalogue SET revision = revision + 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER catalogue_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON platforms
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed();
