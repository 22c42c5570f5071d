//! Failures and secrets: crashes, lost connections, shutdown, upgrades, resource leaks, keys and
//! encryption at rest.

mod alerts;
mod backup;
mod browser_hosts;
mod connections;
mod crash_recovery;
mod draining;
mod durability;
mod encryption_at_rest;
mod graceful_shutdown;
mod instances;
mod key_rotation;
mod migrations;
mod resource_leaks;
mod rolling_upgrade;
mod secret_key;
mod soak;
mod upgrade;
