//! Failures and secrets: crashes, lost connections, shutdown, upgrades, resource leaks, keys and
//! encryption at rest.

mod alerts;
mod attestor;
mod backup;
mod browser_hosts;
mod clocks;
mod connections;
mod crash_recovery;
mod delivery_leases;
mod draining;
mod durability;
mod encryption_at_rest;
mod failover;
mod failures;
mod graceful_shutdown;
mod instances;
mod key_rotation;
mod killed_start;
mod migrations;
mod partition;
mod resource_leaks;
mod roles;
mod rolling_upgrade;
mod secret_key;
mod soak;
mod traces;
mod upgrade;
