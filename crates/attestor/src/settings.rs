//! What an attestor is told at its start, how much it does, and why it does not start.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use attestation::descriptor::Descriptor;
use domain::egress::Egress;

use crate::{Clients, KeyError, LogError};

/// What an attestor is and may do.
pub struct Settings {
    /// Of whom the keys are, for people.
    pub name: String,
    /// The folder of the keys.
    pub keys: PathBuf,
    /// The folder of the log.
    pub log: PathBuf,
    /// The name of the log, by which monitors know it; it never changes.
    pub log_origin: String,
    /// What may be attested.
    pub descriptors: Vec<Descriptor>,
    /// Certificates, DER, that servers' chains may end at.
    pub roots: Vec<Vec<u8>>,
    /// Addresses of servers that are not looked up, by name.
    pub hosts: Vec<(String, SocketAddr)>,
    /// Which other addresses may be connected to than public ones.
    pub egress: Egress,
    pub clients: Clients,
    pub bounds: Bounds,
    /// The program that examines, called with [`EXAMINE`](crate::EXAMINE).
    pub program: PathBuf,
}

/// How much an attestor does.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Conversations at once; whoever comes then is refused.
    pub conversations: usize,
    /// How many of them one client may have: one token, or where everybody is served one address.
    pub per_client: usize,
    /// Examinations at once; the others wait.
    pub examinations: usize,
    /// How many of them may wait; whoever comes then is refused.
    pub queue: usize,
    /// How long one may wait.
    pub waiting: Duration,
    /// How long a connection to a server may be.
    pub relay: Duration,
    /// How long a prover may take from the receipt to what opens the recording.
    pub proving: Duration,
    /// How long one examination may take.
    pub examining: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            conversations: 64,
            per_client: 8,
            examinations: 1,
            queue: 16,
            waiting: Duration::from_secs(30),
            relay: Duration::from_secs(30),
            proving: Duration::from_secs(180),
            examining: Duration::from_secs(60),
        }
    }
}

/// Why an attestor does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("descriptor for {0}: {1}")]
    Descriptor(String, #[source] attestation::descriptor::BadDescriptor),
    #[error("no client is known: configure tokens, or say that everybody is to be served")]
    Clients,
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    #[error("its own program cannot be read")]
    Program(#[source] io::Error),
}
