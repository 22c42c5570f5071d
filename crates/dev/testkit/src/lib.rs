//! Shared test support: sample values, a fake clock, temporary servers and browsers, and the
//! contract suite of each port.

pub mod certificates;
pub mod clock;
pub mod contract;
pub mod fleet;
pub mod grid;
pub mod port;
pub mod redis;
pub mod s3;
pub mod sample;
pub mod tls;

#[doc(hidden)]
pub use tokio;
