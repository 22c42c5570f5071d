//! The rules of an account-verification session, with no I/O in sight.
//!
//! **Invariant:** this crate knows no clock, no chance, no database, no HTTP and
//! no browser. Time and identifiers are handed in; what must happen in the
//! world is handed back, as [`session::Effect`] and [`workflow::Command`] values.

pub mod account;
pub mod api_key;
pub mod attempts;
pub mod audit;
pub mod binding;
pub mod branding;
pub mod egress;
pub mod egress_proxy;
pub mod error_code;
pub mod fairness;
pub mod frame_ancestors;
pub mod id;
pub mod language;
pub mod notice;
pub mod notification;
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
