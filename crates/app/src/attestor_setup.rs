//! Who attests: the configured attestor, or one inside this process for the sandbox platform,
//! whose word is worth as much as our own.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use attestor::{
    AllowedClients, AttestorLimits, AttestorServer as Embedded, AttestorStartError, LogError,
    Settings, new_key, now,
};
use domain::{
    egress::Egress,
    fairness::{MAX_WAITING, Quotas},
};
use ports::{
    attestor::{AttestError, AttestationOrder, Attested, Attestor, OnProgress},
    clock::Clock,
};
use prover::{AttestorAddress, Prover, descriptor};
use sandbox::SandboxPlatform;
use system::data_dir::private_folder;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::{AttestationConfig, Config},
    storage::{StartupError, error_chain},
};
use application::attestation_queue::FairAttestor;

/// How long the embedded attestor's key may sign.
const DAYS: u64 = 3650;
const MOST_PROCESSES: usize = 64;

/// The configured attestor, or an embedded one that ends with `stop`.
pub(crate) async fn attestor(
    config: &Config,
    program: &Path,
    site: &SandboxPlatform,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<Arc<dyn Attestor>, StartupError> {
    let roots = [config.egress_roots.clone(), vec![site.root().to_vec()]].concat();
    let address = match &config.attesting.attestor {
        Some(address) => address.clone(),
        None => match embedded(config, program, site, stop, tasks).await {
            Ok(address) => address,
            Err(error) => {
                tracing::warn!("nothing can be attested: {error}");
                return Ok(Arc::new(NoAttestor));
            }
        },
    };
    let AttestationConfig { proofs, proofs_per_team, .. } = config.attesting;
    let prover = Prover::new(address, roots, program.to_owned(), proofs).map_err(error_chain)?;
    // While one is proved another is recorded.
    let total = proofs.saturating_mul(2);
    let quotas = Quotas {
        total,
        per_team: proofs_per_team.saturating_mul(2),
        development: total,
        waiting_per_team: MAX_WAITING,
    };
    Ok(Arc::new(FairAttestor::new(Arc::new(prover), quotas, clock)))
}

async fn embedded(
    config: &Config,
    program: &Path,
    site: &SandboxPlatform,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<AttestorAddress, StartupError> {
    let folder = config.data_dir.join("attestor");
    private_folder(&folder).map_err(error_chain)?;
    let keys = folder.join("keys");
    if !has_any(&keys) {
        new_key(&keys, now(), DAYS)?;
    }
    let address = site.tls_address()?;
    let settings = |number: usize| Settings {
        name: "the service itself, for its sandbox platform alone".into(),
        keys: keys.clone(),
        log: folder.join(format!("tlog-{number}")),
        log_origin: format!("avouch-sandbox/{number}"),
        descriptors: descriptor(&site.definition).into_iter().collect(),
        roots: vec![site.root().to_vec()],
        hosts: vec![(sandbox::HOST.to_owned(), address)],
        egress: Egress::default(),
        // It listens on the loopback interface alone.
        clients: AllowedClients::Everyone,
        // As many as proofs are made at once.
        limits: AttestorLimits {
            examinations: config.attesting.proofs,
            ..AttestorLimits::default()
        },
        program: program.to_owned(),
    };
    // Each process that shares the folder has a log of its own.
    let mut logs = 0..MOST_PROCESSES;
    let attestor = loop {
        let log = logs.next().ok_or("too many processes share the data folder")?;
        match Embedded::new(settings(log)) {
            Err(AttestorStartError::Log(LogError::Locked(_))) => (),
            made => break made?,
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let keys = attestor.public_keys()?;
    tasks.spawn(attestor.serve(listener, stop));
    Ok(AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys })
}

fn has_any(keys: &PathBuf) -> bool {
    fs::read_dir(keys).is_ok_and(|mut entries| entries.next().is_some())
}

/// Stands where there is no attestor.
struct NoAttestor;

#[async_trait]
impl Attestor for NoAttestor {
    async fn attest(
        &self,
        _: AttestationOrder,
        _: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        Err(AttestError::None)
    }
}
