//! Every store over Diesel, for PostgreSQL and for SQLite, from one body of queries.
//!
//! The two differ in `engine::column`, where each kind of value says how each database writes it, and in
//! how rows are claimed. Each query is written once and checked by the compiler for both.

mod accounts;
mod deliveries;
mod engine;
mod sessions;
mod teams;

pub use self::engine::{
    database::Store,
    keyring::Encryption,
    probe::Probe,
    server::{DatabaseUrl, InvalidDatabaseUrl, InvalidTls, SslMode, Timeouts},
};
