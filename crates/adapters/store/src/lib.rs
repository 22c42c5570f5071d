//! Every store over Diesel, for PostgreSQL and for SQLite, from one body of queries.
//!
//! The two differ in [`column`], where each kind of value says how each database writes it, and in
//! how rows are claimed. Each query is written once and checked by the compiler for both.

mod account_links;
mod attestations;
mod audit;
mod brands;
mod catalogue;
mod claims;
mod column;
mod data_key;
mod data_keys;
mod database;
mod debts;
mod deliveries;
mod delivery_log;
mod deployment_key;
mod devices;
mod hash;
mod health;
mod inserts;
mod invitations;
mod joins;
mod keyring;
mod keys;
mod known_browsers;
mod lane;
mod moves;
mod notices;
mod notifications;
mod outbox;
mod passkeys;
mod polls;
mod pools;
mod probe;
mod reads;
mod receivers;
mod recordings;
mod rewrite;
mod schema;
mod server;
mod session_row;
mod sessions;
mod settles;
mod sign_ins;
mod suppressions;
mod team_reads;
mod templates;
mod together;
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
    server::{BadDatabaseUrl, BadTls, DatabaseUrl, SslMode, Timeouts},
};
