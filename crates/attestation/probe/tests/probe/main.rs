//! Probes of real TLS servers on the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod response;
mod server;
mod tls;
