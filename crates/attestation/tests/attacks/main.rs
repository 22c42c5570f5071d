//! Attacks on the witness of a connection, each refused for a reason of its own. The numbers are
//! those of the list of attacks that the design of attestations was made against.
#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests panic to fail"
)]

mod answered;
mod anybody;
mod bounds;
mod changed;
mod evidence;
mod fixed;
mod forge;
mod handshake;
mod hidden;
mod liar;
mod messages;
mod path;
mod portable;
mod scene;
mod selective;
mod signed;
mod target;
