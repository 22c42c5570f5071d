//! The statements that an attestor of a TLS 1.3 connection can make, and their verification: from
//! the recorded bytes of both directions to values of the response. Every failed check has its own
//! error.
//!
//! **Invariant:** no input or output, no clock, no other crate of this workspace. All input is
//! untrusted and may come from a party that wants a false attestation; it results in findings or an
//! [`ExaminationError`], within the limits of each module.

pub mod attest;
pub mod body;
mod bytes;
pub mod commitment;
pub mod descriptor;
mod error;
pub mod evidence;
pub mod full_reveal;
pub mod http;
pub mod json;
pub mod portable;
pub mod protocol;
pub mod signed;
pub mod tlog;
mod tls;
pub mod trust_list;
pub mod zk;
pub mod zktls;

pub use self::{
    error::ExaminationError,
    tls::{
        flight::{CertificateTrust, MAX_CHAIN_CERTIFICATES},
        key_schedule::Suite,
    },
};
