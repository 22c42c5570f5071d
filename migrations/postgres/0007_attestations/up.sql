-- What belongs to a session's attestation, encrypted, under its proofHash.
CREATE TABLE attestations (
    session uuid PRIMARY KEY REFERENCES sessions (id),
    proof   text NOT NULL,
    package bytea NOT NULL
);
CREATE INDEX attestations_proof ON attestations (proof);
