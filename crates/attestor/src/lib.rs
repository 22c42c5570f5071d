//! The independent attestor: relays a prover's connection to a platform's server, records it, and
//! signs an attestation of the exchange once the prover has revealed its content.
//!
//! **Invariant:** the attestor itself resolves the server's name and connects to it, and only for
//! targets on its own list of descriptors. It accepts a secret only after the connection is closed,
//! and drops it with the conversation. Every input is limited in length, number and time.

mod attempts;
mod clients;
mod config;
mod conversation;
mod examine;
mod keys;
mod log;
mod monitor;
mod relay;
mod settings;

use std::{
    fs,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use attestation::{body::Build, signed::Issuer};
use minicbor::bytes::ByteVec;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer, version::TLS13};
use sha2::{Digest as _, Sha256};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    attempts::Attempts,
    clients::Tally,
    keys::{current, read_keys},
    log::Log,
};
pub use self::{
    clients::Clients,
    config::{BadConfig, Config},
    examine::work,
    keys::{KeyEntry, KeyError, KeyState, list_keys, new_key, revoke_key},
    log::{LogError, default_origin, log_key},
    monitor::{Finding, Monitor, Seen},
    settings::{Bounds, Settings, StartError},
};

/// First argument with which the examiner process is started; a program that receives it calls
/// [`run_worker`].
pub const EXAMINE: &str = "examine-recordings";
/// Accepted connections per allowed conversation.
const DOORS: usize = 4;
/// Time from a shutdown request to the end of the last conversation.
const DRAIN: Duration = Duration::from_secs(20);

/// An attestor.
pub struct Attestor {
    settings: Settings,
    log: Mutex<Log>,
    /// Sessions that are being attested now.
    under_way: Mutex<Vec<[u8; 32]>>,
    attempts: Mutex<Attempts>,
    pool: jobs::Pool,
    /// Permits for running examinations, and for running and waiting ones together.
    examiners: Semaphore,
    queue: Semaphore,
    roots: Vec<ByteVec>,
    roots_sha256: [u8; 32],
    build: Build,
    acceptor: TlsAcceptor,
    room: Semaphore,
    /// Conversations by client, and connections without an open message by address.
    conversations: Tally,
    newcomers: Tally,
    /// Permits for all connections, including those that are not conversations yet. Connections
    /// above the limit are closed at once.
    doors: Arc<Semaphore>,
}

impl Attestor {
    /// Validates the settings and opens the log.
    ///
    /// # Errors
    /// Returns the first setting that is invalid or cannot be read.
    pub fn new(settings: Settings) -> Result<Arc<Self>, StartError> {
        for descriptor in &settings.descriptors {
            let bad = |error| StartError::Descriptor(descriptor.host.clone(), error);
            descriptor.check().map_err(bad)?;
        }
        if settings.clients == Clients::Known(vec![]) {
            return Err(StartError::Clients);
        }
        let keys = read_keys(&settings.keys)?;
        let key = current(&keys, now()).ok_or_else(|| KeyError::None(settings.keys.clone()))?;
        let issuers = keys::issuers(&settings.name, &settings.keys)?;
        let issuers: Vec<Issuer> = serde_json::from_value(issuers.into()).unwrap_or_default();
        let origin = &settings.log_origin;
        let log = Log::open(&settings.log, origin, &issuers, Some(&key.signing))?;
        let log = Mutex::new(log);
        let program = fs::read(&settings.program).map_err(StartError::Program)?;
        let build = Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: Sha256::digest(&program).into(),
        };
        let Bounds { conversations, examinations, queue, examining, .. } = settings.bounds;
        let pool = jobs::Pool::new(settings.program.clone(), EXAMINE, examinations, examining);
        let mut roots = settings.roots.clone();
        roots.sort();
        roots.dedup();
        let roots_sha256 = roots_hash(&roots);
        Ok(Arc::new(Self {
            log,
            under_way: Mutex::default(),
            attempts: Mutex::default(),
            pool,
            examiners: Semaphore::new(examinations.max(1)),
            queue: Semaphore::new(examinations.max(1).saturating_add(queue)),
            roots: roots.into_iter().map(ByteVec::from).collect(),
            roots_sha256,
            build,
            acceptor: acceptor()?,
            room: Semaphore::new(conversations.max(1)),
            conversations: Tally::default(),
            newcomers: Tally::default(),
            doors: Arc::new(Semaphore::new(conversations.max(1) * DOORS)),
            settings,
        }))
    }

    /// Serves until `stop` is cancelled. Running conversations then have 20 s to finish.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        loop {
            let came = tokio::select! {
                came = listener.accept() => came,
                () = stop.cancelled() => break,
            };
            match came {
                Ok((stream, from)) => {
                    let Ok(door) = self.doors.clone().try_acquire_owned() else { continue };
                    let me = self.clone();
                    tasks.spawn(async move {
                        me.receive(stream, from).await;
                        drop(door);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; the listener continues in 100 ms");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        tasks.close();
        if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
            tracing::warn!("some conversations did not finish within {DRAIN_TIMEOUT:?}; they are dropped");
        }
    }

    /// Returns the published public keys, as the JSON that `avouch-verify --keys` reads.
    ///
    /// # Errors
    /// The keys cannot be read.
    pub fn issuers(&self) -> Result<serde_json::Value, KeyError> {
        issuers(&self.settings.name, &self.settings.keys)
    }

    /// Returns the public keys, without revoked ones.
    ///
    /// # Errors
    /// The keys cannot be read.
    pub fn public_keys(&self) -> Result<Vec<[u8; 32]>, KeyError> {
        let keys = read_keys(&self.settings.keys)?;
        Ok(keys.iter().map(|key| key.signing.verifying_key().to_bytes()).collect())
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<[u8; 32]>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the public keys of a folder, including revoked ones, as JSON.
///
/// # Errors
/// The keys cannot be read.
pub fn issuers(name: &str, keys: &std::path::Path) -> Result<serde_json::Value, KeyError> {
    Ok(serde_json::json!({ "issuers": keys::issuers(name, keys)? }))
}

/// Hashes all roots in order, each preceded by its length in 4 bytes.
fn roots_hash(roots: &[Vec<u8>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for root in roots {
        hash.update(u32::try_from(root.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(root);
    }
    hash.finalize().into()
}

/// Creates a TLS acceptor with an ephemeral certificate: provers identify the attestor by the
/// notary key that signs the channel binding.
fn acceptor() -> Result<TlsAcceptor, StartError> {
    let failed = |error: &dyn std::error::Error| StartError::Tls(error.to_string());
    let made = rcgen::generate_simple_self_signed(vec!["attestor.invalid".to_owned()]);
    let made = made.map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|error| StartError::Tls(error.to_owned()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
        })
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![attestation::protocol::ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
