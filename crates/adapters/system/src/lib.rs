//! The clock, randomness, keyed tokens, encryption, the places of the world and the refusal log of
//! this process.

pub mod clock;
pub mod encryption;
pub mod places;
pub mod refusals;
