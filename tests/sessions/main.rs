//! Sessions from their creation to their end: journeys, ownership, observers, recordings,
//! attestations, placement and trials.

mod absence;
mod attempts;
mod attestation;
mod custom_url;
mod definition_language;
mod fixtures;
mod journeys;
mod observer;
mod placement;
mod recording;
mod sandbox_library;
mod sandbox_shop;
mod single_page;
mod studio;
mod takeover;
mod test_clock;
mod versions;
mod workflow_run;
