#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

//! The verifier against spartan2's own, against a malicious prover, and against mutants of a proof.

#[cfg(test)]
mod forger;
#[cfg(test)]
mod forgeries;
#[cfg(test)]
mod honest;
mod mutants;
mod small;
mod tree;

#[cfg(fuzzing)]
pub use self::mutants::refuse;
