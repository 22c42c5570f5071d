-- The running processes of the deployment, as they report themselves.
CREATE TABLE instances (
    id          uuid PRIMARY KEY,
    address     text NOT NULL,
    region      text,
    slots       integer NOT NULL,
    sessions    integer NOT NULL,
    draining    boolean NOT NULL,
    reports     bigint NOT NULL
);
