//! Sessions from their creation to their end: journeys, ownership, observers, recordings,
//! attestations and placement.

mod attempts;
mod attestation;
mod journeys;
mod observer;
mod placement;
mod recording;
mod takeover;
