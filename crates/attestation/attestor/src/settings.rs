//! The settings of an attestor, its limits, and the errors of its start.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use attestation::descriptor::Descriptor;
use domain::egress::Egress;

use crate::{AllowedClients, KeyError, LogError};

/// The settings of an attestor.
pub struct Settings {
    /// Name of the keys' owner, for people.
    pub name: String,
    /// The folder of the keys.
    pub keys: PathBuf,
    /// The folder of the log.
    pub log: PathBuf,
    /// The name by which monitors identify the log; it never changes.
    pub log_origin: String,
    /// The descriptors that may be attested.
    pub descriptors: Vec<Descriptor>,
    /// Root certificates (DER) for the servers' chains.
    pub roots: Vec<Vec<u8>>,
    /// Addresses of servers that are not resolved by DNS, by name.
    pub hosts: Vec<(String, SocketAddr)>,
    /// Non-public addresses that may be connected to.
    pub egress: Egress,
    pub clients: AllowedClients,
    pub limits: AttestorLimits,
    /// The program that examines, started with [`EXAMINER_ARGUMENT`](crate::EXAMINER_ARGUMENT).
    pub program: PathBuf,
}

/// The limits of an attestor.
#[derive(Debug, Clone, Copy)]
pub struct AttestorLimits {
    /// Concurrent conversations; further ones are refused.
    pub conversations: usize,
    /// Concurrent conversations per client: per token, or per address if every client is served.
    pub per_client: usize,
    /// Concurrent examinations; further ones wait.
    pub examinations: usize,
    /// Number of waiting examinations; further ones are refused.
    pub queue: usize,
    /// Time limit for waiting.
    pub queue_timeout: Duration,
    /// Time limit for a connection to a server.
    pub relay_timeout: Duration,
    /// Time limit for the prover, from the receipt to the reveal message.
    pub proving_timeout: Duration,
    /// Time limit for one examination.
    pub examination_timeout: Duration,
}

impl Default for AttestorLimits {
    fn default() -> Self {
        Self {
            conversations: 64,
            per_client: 8,
            examinations: 1,
            queue: 16,
            queue_timeout: Duration::from_secs(30),
            relay_timeout: Duration::from_secs(30),
            proving_timeout: Duration::from_secs(180),
            examination_timeout: Duration::from_secs(60),
        }
    }
}

/// Why an attestor does not start.
#[derive(Debug, thiserror::Error)]
pub enum AttestorStartError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("descriptor for {0}: {1}")]
    Descriptor(String, #[source] attestation::descriptor::DescriptorError),
    #[error("no client is allowed: configure tokens, or allow every client explicitly")]
    Clients,
    #[error("failed to set up TLS: {0}")]
    Tls(String),
    #[error("failed to read the attestor's own program")]
    Program(#[source] io::Error),
}
