//! The attestor: the configured one, or one inside this process for the sandbox platform, whose
//! attestations are worth no more than the word of the service itself.

use std::{path::Path, sync::Arc};

use attestor::{EmbeddedAttestor, EmbeddedSettings};
use domain::fairness::{MAX_WAITING, Quotas};
use ports::{attestor::Attestor, clock::Clock};
use prover::{AttestorAddress, Prover, descriptor};
use sandbox::SandboxPlatform;
use system::data_dir::private_folder;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::{AttestationConfig, Config},
    storage::{StartupError, error_chain},
};
use application::{attestation_queue::FairAttestor, attestations::NoAttestor};

/// Returns the configured attestor, or an embedded one that ends with `stop`.
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
    // While one connection is proved, another one is recorded.
    let total = proofs.saturating_mul(2);
    let quotas = Quotas {
        total,
        per_team: proofs_per_team.saturating_mul(2),
        development: total,
        waiting_per_team: MAX_WAITING,
    };
    Ok(Arc::new(FairAttestor::new(Arc::new(prover), quotas, clock)))
}

/// Starts an attestor inside this process, for the sandbox platform only.
async fn embedded(
    config: &Config,
    program: &Path,
    site: &SandboxPlatform,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<AttestorAddress, StartupError> {
    let folder = config.data_dir.join("attestor");
    private_folder(&folder).map_err(error_chain)?;
    let settings = EmbeddedSettings {
        name: "the service itself, for its sandbox platform alone".into(),
        log_origin: "avouch-sandbox".into(),
        folder,
        descriptors: site.definitions.iter().filter_map(descriptor).collect(),
        roots: vec![site.root().to_vec()],
        hosts: vec![(sandbox::HOST.to_owned(), site.tls_address()?)],
        // As many as proofs are made at once.
        examinations: config.attesting.proofs,
        program: program.to_owned(),
    };
    let started = EmbeddedAttestor::start(settings, stop, tasks).await;
    let EmbeddedAttestor { port, keys } = started?;
    Ok(AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys })
}
