//! The wiring: configuration, use cases, workers, and the only place that names concrete adapters.

pub mod cli;
pub mod config;

mod admin;
mod browsers;
mod channels;
mod check;
mod folders;
mod jail;
mod kept;
mod limiters;
mod partners_portal;
mod portal_wiring;
mod secret_key;
mod service;
mod site;
mod trial;
mod witness;

pub use application::api_keys::ApiKeyText;
pub use attestor::EXAMINER_ARGUMENT;
pub use prover::PROVER_ARGUMENT;

pub use self::{
    jail::JAIL,
    service::{Parts, Service},
};
