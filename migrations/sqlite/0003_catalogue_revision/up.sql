-- Another number after each change to a platform, whoever makes it, so that who keeps an answer
-- made of platforms can tell whether it still holds.
CREATE TABLE catalogue (
    id       INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO catalogue (revision) VALUES (1);

CREATE TRIGGER platform_added AFTER INSERT ON platforms
BEGIN
    UPDATE catalogue SET revision = revision + 1;
END;
CREATE TRIGGER platform_changed AFTER UPDATE ON platforms
BEGIN
    UPDATE catalogue SET revision = revision + 1;
END;
CREATE TRIGGER platform_removed AFTER DELETE ON platforms
BEGIN
    UPDATE catalogue SET revision = revision + 1;
END;
