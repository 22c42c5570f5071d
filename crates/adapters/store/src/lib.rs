//! Every store port on Diesel, for PostgreSQL and SQLite, with one set of queries.
//!
//! The databases differ in `engine::column`, which defines how each kind of value is stored, and in
//! how rows are claimed. Each query is written once and type-checked for both.

mod accounts;
mod deliveries;
mod engine;
mod sessions;
mod teams;

pub use self::engine::{
    database::Store,
    diagnostic::DatabaseDiagnostic,
    keyring::Encryption,
    migrations::{
        Migration, MigrationError, MigrationLimits, Migrator, SchemaPolicy, SchemaStatus,
    },
    probe::{MigrationCounts, Probe},
    server::{DatabaseUrl, InvalidDatabaseUrl, InvalidTls, SslMode, Timeouts},
};
