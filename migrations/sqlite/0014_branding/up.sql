-- What teams look like to their applicants.
CREATE TABLE brands (
    team   TEXT PRIMARY KEY NOT NULL REFERENCES teams (id),
    name   TEXT,
    colour TEXT,
    logo   BLOB
) STRICT;
