//! What tests share: sample values, a clock that is set by hand, servers and browsers to throw away, and the contract of each port.

pub mod certificates;
pub mod clock;
pub mod contract;
pub mod fleet;
pub mod port;
pub mod redis;
pub mod s3;
pub mod sample;
pub mod tls;

#[doc(hidden)]
pub use tokio;
