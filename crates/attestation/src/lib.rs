//! What a witness of a TLS 1.3 connection can attest, and how that is checked: from the recorded
//! bytes of both directions to values of the response, each step with a reason of its own to
//! refuse.
//!
//! **Invariant:** no input or output, no clock, no other crate of ours. What is read may be
//! anything and comes from somebody who wants a false attestation; it gives findings or a
//! [`Refusal`], within the bounds of each module.

pub mod attest;
pub mod body;
mod bytes;
pub mod commitment;
pub mod descriptor;
pub mod evidence;
pub mod full_reveal;
pub mod http;
pub mod json;
pub mod portable;
pub mod protocol;
mod refusal;
pub mod signed;
pub mod tlog;
mod tls;
pub mod trust_list;
pub mod zk;
pub mod zktls;

pub use self::{
    refusal::Refusal,
    tls::{flight::Trust, schedule::Suite},
};
