//! Failures and secrets: crashes, lost connections, shutdown, resource leaks, keys and encryption
//! at rest.

mod connections;
mod crash_recovery;
mod durability;
mod encryption_at_rest;
mod graceful_shutdown;
mod key_rotation;
mod resource_leaks;
mod secret_key;
