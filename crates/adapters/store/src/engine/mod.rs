//! The infrastructure of all queries: connections, batching, encryption and the schema.

pub(crate) mod batcher;
pub(crate) mod clock;
pub(crate) mod column;
pub(crate) mod data_key;
pub(crate) mod data_keys;
pub(crate) mod database;
pub(crate) mod deployment_key;
pub(crate) mod diagnostic;
pub(crate) mod hash;
pub(crate) mod joins;
pub(crate) mod keyring;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod migrations;
pub(crate) mod pipelined;
pub(crate) mod pools;
pub(crate) mod probe;
pub(crate) mod rewrite;
pub(crate) mod schema;
pub(crate) mod server;
