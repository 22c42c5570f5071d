//! The use cases and workers of the service.
//!
//! **Invariant:** this crate depends on `domain` and `ports` only. It names no database, no HTTP
//! framework and no browser.

pub mod administration;
pub mod advance;
pub mod api_keys;
pub mod attestation_queue;
pub mod attestations;
pub mod browser_turns;
pub mod contacts;
pub mod definition_statistics;
pub mod delivery;
pub mod detached;
pub mod diagnosis;
pub mod drafts;
pub mod draining;
pub mod instances;
pub mod live;
pub mod mail_preferences;
pub mod portal;
pub mod session_traces;
pub mod sessions;
pub mod settings;
pub mod template_review;
pub mod trusted_keys;
pub mod urls;
pub mod webhooks;
pub mod workers;

mod digest;
#[cfg(test)]
mod fakes;
mod support;
#[cfg(test)]
mod testing;

/// Returns an error and all its causes in one line.
#[must_use]
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}
