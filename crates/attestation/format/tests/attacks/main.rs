//! Attacks on the attestor of a connection, each refused for its own reason. The numbers are those
//! of the list of attacks that the design of attestations considers.
#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests panic to fail"
)]

mod any_certificate;
mod bounds;
mod changed;
mod evidence;
mod fixed;
mod forge;
mod handshake;
mod hidden;
mod lying_prover;
mod messages;
mod network_path;
mod portable;
mod revealed_response;
mod selective;
mod setup;
mod signed;
mod target;
