//! The services of the portal against the in-memory store.

mod accounts;
mod api_keys;
mod contacts;
mod fakes;
mod fixture;
mod members;
mod passkeys;
mod permissions;
mod reauthentication;
mod second_factor;
mod services;
mod sign_in;
