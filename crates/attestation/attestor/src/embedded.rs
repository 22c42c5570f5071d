//! An attestor inside another program, which its own clients alone reach. Its attestations are worth
//! no more than the word of that program.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use attestation::descriptor::Descriptor;
use domain::egress::Egress;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    AllowedClients, AttestorLimits, AttestorServer, AttestorStartError, KeyError, LogError,
    Settings, new_key, now,
};

/// How long the generated key may sign, in days.
const KEY_VALIDITY_DAYS: u64 = 3650;
/// Processes that share a folder.
const MAX_PROCESSES: usize = 64;

/// The settings of an embedded attestor.
pub struct EmbeddedSettings {
    /// Name of the key's owner, for people.
    pub name: String,
    /// The beginning of the names of the logs.
    pub log_origin: String,
    /// The folder of the key and the logs.
    pub folder: PathBuf,
    /// The descriptors that may be attested.
    pub descriptors: Vec<Descriptor>,
    /// Root certificates (DER) for the servers' chains.
    pub roots: Vec<Vec<u8>>,
    /// Addresses of servers that are not resolved by DNS, by name.
    pub hosts: Vec<(String, SocketAddr)>,
    /// Concurrent examinations.
    pub examinations: usize,
    /// The program that examines, started with [`EXAMINER_ARGUMENT`](crate::EXAMINER_ARGUMENT).
    pub program: PathBuf,
}

/// How a running embedded attestor is reached, on the loopback interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedAttestor {
    pub port: u16,
    pub keys: Vec<[u8; 32]>,
}

/// Why an embedded attestor was not started.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedStartError {
    #[error("too many processes share the data folder")]
    TooManyProcesses,
    #[error(transparent)]
    Start(#[from] AttestorStartError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Listen(#[from] io::Error),
}

impl EmbeddedAttestor {
    /// Starts an attestor that serves until `stop` is cancelled. Its key is generated if the folder
    /// has none. Each process that shares the folder has a log of its own.
    ///
    /// # Errors
    /// The folder cannot be read or written, or is shared by too many processes.
    pub async fn start(
        settings: EmbeddedSettings,
        stop: CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<Self, EmbeddedStartError> {
        let keys = settings.folder.join("keys");
        if !has_entries(&keys) {
            new_key(&keys, now(), KEY_VALIDITY_DAYS)?;
        }
        let mut numbers = 0..MAX_PROCESSES;
        let server = loop {
            let number = numbers.next().ok_or(EmbeddedStartError::TooManyProcesses)?;
            match AttestorServer::new(settings.with_log(number)) {
                Err(AttestorStartError::Log(LogError::Locked(_))) => (),
                started => break started?,
            }
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let keys = server.public_keys()?;
        tasks.spawn(server.serve(listener, stop));
        Ok(Self { port, keys })
    }
}

impl EmbeddedSettings {
    fn with_log(&self, number: usize) -> Settings {
        Settings {
            name: self.name.clone(),
            keys: self.folder.join("keys"),
            log: self.folder.join(format!("tlog-{number}")),
            log_origin: format!("{}/{number}", self.log_origin),
            descriptors: self.descriptors.clone(),
            roots: self.roots.clone(),
            hosts: self.hosts.clone(),
            egress: Egress::default(),
            // It listens on the loopback interface only.
            clients: AllowedClients::Everyone,
            limits: AttestorLimits { examinations: self.examinations, ..AttestorLimits::default() },
            program: self.program.clone(),
        }
    }
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
