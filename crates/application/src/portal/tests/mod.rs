//! The use cases of the portal against the in-memory store.
