-- What belongs to a session's attestation, encrypted, under its proofHash.
CREATE TABLE attestations (
    session TEXT PRIMARY KEY NOT NULL REFERENCES sessions (id),
    proof   TEXT NOT NULL,
    package BLOB NOT NULL
) STRICT;
CREATE INDEX attestations_proof ON attestations (proof);
