//! The wiring: configuration, use cases, workers, and the only place that names concrete adapters.

pub mod cli;
pub mod config;

mod admin;
mod attest_probe;
mod attestor_setup;
mod browser_hosts;
mod browser_sandbox;
mod browsers;
mod channels;
mod check;
mod doctor;
mod engine;
mod instances;
mod limiters;
mod migrate;
mod portal_wiring;
mod service;
mod storage;
mod studio_wiring;
mod traces;
mod wiring;
mod workers;
mod workflow_run;
mod workflow_studio;

pub use application::api_keys::ApiKeyText;
pub use attestor::EXAMINER_ARGUMENT;
pub use prover::PROVER_ARGUMENT;

pub use self::{
    browser_sandbox::SANDBOX_ARGUMENT,
    service::{Overrides, Service},
};
