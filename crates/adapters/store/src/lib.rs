//! Every store over Diesel, for PostgreSQL and for SQLite, from one body of queries.
//!
//! The two differ in [`column`], where each kind of value says how each database writes it, and in
//! how rows are claimed. Each query is written once and checked by the compiler for both.

mod account_links;
mod attestations;
mod audit;
mod batcher;
mod brands;
mod catalogue;
mod change_records;
mod claims;
mod column;
mod contacts;
mod data_key;
mod data_keys;
mod database;
mod deliveries;
mod delivery_log;
mod deployment_key;
mod devices;
mod hash;
mod health;
mod insert_batch;
mod invitations;
mod joins;
mod keyring;
mod keys;
mod known_browsers;
mod notices;
mod notifications;
mod outbox;
mod passkeys;
mod pipelined;
mod poll_batch;
mod pools;
mod probe;
mod reads;
mod recordings;
mod rewrite;
mod schema;
mod server;
mod session_row;
mod session_write;
mod sessions;
mod settle_batch;
mod sign_ins;
mod suppressions;
mod team_reads;
mod templates;
mod user_row;
mod users;
mod webhook_changes;
mod webhooks;

pub use self::{
    database::Store,
    deployment_key::DeploymentKey,
    keyring::Encryption,
    probe::Probe,
    rewrite::Table,
    server::{DatabaseUrl, InvalidDatabaseUrl, InvalidTls, SslMode, Timeouts},
};
