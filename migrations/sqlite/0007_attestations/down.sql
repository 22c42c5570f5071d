DROP TABLE attestations;
