//! Tests of the verifier against spartan2's own, against a malicious prover, and against mutants of
//! a proof.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

#[cfg(test)]
mod deviation;
#[cfg(test)]
mod forger;
#[cfg(test)]
mod forgeries;
#[cfg(test)]
mod honest;
mod mutants;
#[cfg(test)]
mod parts;
mod small;
mod tree;

#[cfg(fuzzing)]
pub use self::mutants::refuse;
#[cfg(test)]
pub(in crate::zk) use self::{deviation::Deviation, forger::Forger, mutants::Sources, tree::Node};
