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
mod embedded;
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

use attestation::{body::AttestorBuild, signed::Issuer};
use minicbor::bytes::ByteVec;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer, version::TLS13};
use sha2::{Digest as _, Sha256};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    attempts::AttemptCounter,
    clients::ConcurrencyLimiter,
    keys::{current, read_keys},
    log::TransparencyLog,
};
pub use self::{
    clients::AllowedClients,
    config::{AttestorConfig, ConfigError},
    embedded::{EmbeddedAttestor, EmbeddedSettings, EmbeddedStartError},
    examine::run_worker,
    keys::{KeyEntry, KeyError, KeyState, list_keys, new_key, revoke_key},
    log::{LogError, default_origin, log_key},
    monitor::{Monitor, MonitorError, VerifiedLog},
    settings::{AttestorLimits, AttestorStartError, Settings},
};

/// First argument with which the examiner process is started; a program that receives it calls
/// [`run_worker`].
pub const EXAMINER_ARGUMENT: &str = "examine-recordings";
/// Accepted connections per allowed conversation.
const CONNECTIONS_PER_CONVERSATION: usize = 4;
/// Time from a shutdown request to the end of the last conversation.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// An attestor.
pub struct AttestorServer {
    settings: Settings,
    log: Mutex<TransparencyLog>,
    /// Sessions that are being attested now.
    active_sessions: Mutex<Vec<[u8; 32]>>,
    attempts: Mutex<AttemptCounter>,
    pool: worker_process::Pool,
    /// Permits for running examinations, and for running and waiting ones together.
    examination_permits: Semaphore,
    queue_permits: Semaphore,
    roots: Vec<ByteVec>,
    roots_sha256: [u8; 32],
    build: AttestorBuild,
    acceptor: TlsAcceptor,
    conversation_permits: Semaphore,
    /// Conversations by client, and connections without an open message by address.
    client_conversations: ConcurrencyLimiter,
    pending_connections: ConcurrencyLimiter,
    /// Permits for all connections, including those that are not conversations yet. Connections
    /// above the limit are closed at once.
    connection_permits: Arc<Semaphore>,
}

impl AttestorServer {
    /// Validates the settings and opens the log.
    ///
    /// # Errors
    /// Returns the first setting that is invalid or cannot be read.
    pub fn new(settings: Settings) -> Result<Arc<Self>, AttestorStartError> {
        for descriptor in &settings.descriptors {
            let bad = |error| AttestorStartError::Descriptor(descriptor.host.clone(), error);
            descriptor.check().map_err(bad)?;
        }
        if settings.clients == AllowedClients::Tokens(vec![]) {
            return Err(AttestorStartError::Clients);
        }
        let keys = read_keys(&settings.keys)?;
        let key =
            current(&keys, now()).ok_or_else(|| KeyError::NoValidKey(settings.keys.clone()))?;
        let issuers = keys::issuers(&settings.name, &settings.keys)?;
        let issuers: Vec<Issuer> = serde_json::from_value(issuers.into()).unwrap_or_default();
        let origin = &settings.log_origin;
        let log = TransparencyLog::open(&settings.log, origin, &issuers, Some(&key.signing))?;
        let log = Mutex::new(log);
        let program = fs::read(&settings.program).map_err(AttestorStartError::Program)?;
        let build = AttestorBuild {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: Sha256::digest(&program).into(),
        };
        let AttestorLimits {
            conversations,
            examinations,
            queue,
            examination_timeout: examining,
            ..
        } = settings.limits;
        let pool = worker_process::Pool::new(
            settings.program.clone(),
            EXAMINER_ARGUMENT,
            examinations,
            examining,
        );
        let mut roots = settings.roots.clone();
        roots.sort();
        roots.dedup();
        let roots_sha256 = roots_hash(&roots);
        Ok(Arc::new(Self {
            log,
            active_sessions: Mutex::default(),
            attempts: Mutex::default(),
            pool,
            examination_permits: Semaphore::new(examinations.max(1)),
            queue_permits: Semaphore::new(examinations.max(1).saturating_add(queue)),
            roots: roots.into_iter().map(ByteVec::from).collect(),
            roots_sha256,
            build,
            acceptor: acceptor()?,
            conversation_permits: Semaphore::new(conversations.max(1)),
            client_conversations: ConcurrencyLimiter::default(),
            pending_connections: ConcurrencyLimiter::default(),
            connection_permits: Arc::new(Semaphore::new(
                conversations.max(1) * CONNECTIONS_PER_CONVERSATION,
            )),
            settings,
        }))
    }

    /// Serves until `stop` is cancelled. Running conversations then have 20 s to finish.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, from)) => {
                    let Ok(permit) = self.connection_permits.clone().try_acquire_owned() else {
                        continue;
                    };
                    let attestor = self.clone();
                    tasks.spawn(async move {
                        attestor.handle_connection(stream, from).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; the listener continues in 100 ms");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        tasks.close();
        if tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait()).await.is_err() {
            tracing::warn!(
                "some conversations did not finish within {DRAIN_TIMEOUT:?}; they are dropped"
            );
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

    fn log(&self) -> MutexGuard<'_, TransparencyLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, AttemptCounter> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn active_sessions(&self) -> MutexGuard<'_, Vec<[u8; 32]>> {
        self.active_sessions.lock().unwrap_or_else(PoisonError::into_inner)
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
fn acceptor() -> Result<TlsAcceptor, AttestorStartError> {
    let failed = |error: &dyn std::error::Error| AttestorStartError::Tls(error.to_string());
    let generated = rcgen::generate_simple_self_signed(vec!["attestor.invalid".to_owned()]);
    let generated = generated.map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der())
        .map_err(|error| AttestorStartError::Tls(error.to_owned()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(vec![generated.cert.der().clone()], key)
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
