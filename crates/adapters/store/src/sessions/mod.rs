//! Sessions, and the records that are saved with their transitions.

pub(crate) mod attestations;
pub(crate) mod change_records;
pub(crate) mod commit_batch;
mod delete;
pub(crate) mod devices;
pub(crate) mod find_batch;
pub(crate) mod insert_batch;
pub(crate) mod instances;
pub(crate) mod outbox;
pub(crate) mod poll_batch;
pub(crate) mod reads;
pub(crate) mod recordings;
pub(crate) mod row;
pub(crate) mod store;
mod team_reads;
mod totals;
pub(crate) mod write;
