//! The services of the portal against the in-memory store.

mod accounts;
mod api_keys;
mod audit_logs;
mod contacts;
mod fakes;
mod fixture;
mod identities;
mod links;
mod members;
mod passkeys;
mod permissions;
mod reauthentication;
mod second_factor;
mod services;
mod sign_in;
mod team_sessions;
mod team_webhooks;
mod templates;
