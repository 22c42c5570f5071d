//! The wiring: configuration, use cases, workers, and the only place that names concrete adapters.

pub mod cli;
pub mod config;

mod admin;
mod advance;
mod browsers;
mod channels;
mod check;
mod delivery;
mod folders;
mod jail;
mod kept;
mod keys;
mod limiters;
mod live;
mod mails;
mod partner;
mod portal;
mod receivers;
mod retention;
mod secret_key;
mod service;
mod site;
mod templates;
mod trial;
mod turns;
mod webhooks;
mod whole;
mod witness;
mod workers;

pub use attestor::EXAMINER_ARGUMENT;
pub use prover::PROVER_ARGUMENT;

pub use self::{
    jail::JAIL,
    keys::ApiKeyText,
    service::{Parts, Service},
};
