-- What teams look like to their applicants.
CREATE TABLE brands (
    team   uuid PRIMARY KEY REFERENCES teams (id),
    name   text,
    colour text,
    logo   bytea
);
