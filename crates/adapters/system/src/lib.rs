//! The clock, randomness, keyed tokens, encryption, the secret key and other files of a process, its
//! limits, the places of the world and the refusal log of this process.

pub mod clock;
pub mod data_dir;
pub mod deployment_clock;
pub mod diagnostic;
pub mod encryption;
pub mod places;
pub mod process;
pub mod refusals;
pub mod secret_file;
pub mod secret_key;
