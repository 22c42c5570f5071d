//! The rules of an account-verification session, without I/O.
//!
//! **Invariant:** this crate has no clock, no random source, no database, no HTTP and
//! no browser. Callers pass time and identifiers in; functions return the actions to
//! perform as [`session::Effects`] and [`workflow::Command`] values.

pub mod account;
pub mod api_key;
pub mod attempts;
pub mod audit;
pub mod binding;
pub mod branding;
pub mod definition_health;
pub mod egress;
pub mod egress_proxy;
pub mod error_code;
pub mod error_remedy;
pub mod fairness;
pub mod frame_ancestors;
pub mod https_url;
pub mod id;
pub mod language;
pub mod notice;
pub mod notification;
pub mod placement;
pub mod platform;
pub mod rate;
pub mod reauthentication;
pub mod recording;
pub mod request;
pub mod required_action;
pub mod secret;
pub mod session;
pub mod template;
pub mod webhook;
pub mod worker_region;
pub mod workflow;
