//! The services of the command line, wired to their adapters.

use std::sync::Arc;

use application::{
    administration::{
        ApiKeyAdministration, AttestationExport, ContactAdministration, DefinitionValidation,
        EncryptionAdministration, OperatorAudit, PlatformAdministration, TeamAdministration,
        TemplateAdministration, UserAdministration,
    },
    webhooks::WebhookUseCases,
};
use command_line::AdminServices;
use credentials::{Argon2Passwords, TotpCodes};
use definition_syntax::Syntax;
use messaging::MailTemplates;
use ports::{clock::Clock, random::RandomSource, trusted_roots::TrustedRoots};
use prover::PlanDescriptors;
use sandbox::SiteCertificate;
use store::Store;
use system::{clock::SystemRandom, secret_key::DeploymentSecret};

use crate::{
    config::Config,
    service::deployment_clock,
    storage::{OpenedStorage, StartupError, error_chain},
};

/// Returns what validates platform definitions.
pub(crate) fn definitions() -> DefinitionValidation {
    DefinitionValidation { syntax: Arc::new(Syntax), descriptors: Arc::new(PlanDescriptors) }
}

/// Wires what the commands of `avouch admin` call.
pub(crate) async fn services(
    config: &Config,
    opened: OpenedStorage,
) -> Result<AdminServices, StartupError> {
    let OpenedStorage { store, keys, stable_key } = opened;
    let secret = DeploymentSecret { keys, stable_key, database: store.clone() };
    let clock: Arc<dyn Clock> = Arc::new(deployment_clock(&store).await?);
    let random: Arc<dyn RandomSource> = Arc::new(SystemRandom);
    let audit = OperatorAudit { log: store.clone(), clock: clock.clone() };
    Ok(AdminServices {
        teams: Arc::new(TeamAdministration {
            teams: store.clone(),
            clock: clock.clone(),
            random: random.clone(),
        }),
        api_keys: Arc::new(ApiKeyAdministration {
            teams: store.clone(),
            keys: store.clone(),
            clock: clock.clone(),
            random: random.clone(),
        }),
        users: Arc::new(UserAdministration {
            teams: store.clone(),
            users: store.clone(),
            second_factors: store.clone(),
            sign_ins: store.clone(),
            passkeys: store.clone(),
            hasher: Arc::new(Argon2Passwords::new().map_err(error_chain)?),
            totp: Arc::new(TotpCodes),
            audit: audit.clone(),
            clock: clock.clone(),
            random: random.clone(),
        }),
        contacts: Arc::new(ContactAdministration {
            teams: store.clone(),
            contacts: store.clone(),
            audit: audit.clone(),
            clock: clock.clone(),
            random: random.clone(),
        }),
        templates: Arc::new(TemplateAdministration {
            templates: store.clone(),
            renderer: Arc::new(MailTemplates),
            audit,
        }),
        webhooks: Arc::new(webhooks(config, &store, clock.clone(), random)),
        attestations: Arc::new(AttestationExport {
            attestations: store.clone(),
            roots: Arc::new(ConfiguredRoots(config.clone())),
        }),
        encryption: Arc::new(EncryptionAdministration {
            maintenance: store.clone(),
            webhooks: store.clone(),
            attestations: store.clone(),
            users: store.clone(),
            secret_key: Arc::new(secret),
            clock: clock.clone(),
        }),
        definitions: Arc::new(definitions()),
        platforms: Arc::new(PlatformAdministration { catalogue: store, clock: clock.clone() }),
        clock,
    })
}

/// Wires the use cases of webhooks, which the portal has as well.
pub(crate) fn webhooks(
    config: &Config,
    store: &Arc<Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
) -> WebhookUseCases {
    WebhookUseCases {
        store: store.clone(),
        log: store.clone(),
        keys: store.clone(),
        teams: store.clone(),
        clock,
        random,
        egress: config.egress.clone(),
    }
}

/// The roots of the operator, of the sandbox platform and of the system.
struct ConfiguredRoots(Config);

impl TrustedRoots for ConfiguredRoots {
    fn certificates(&self) -> Vec<Vec<u8>> {
        let Self(config) = self;
        let own = config.egress_roots.iter().cloned();
        let sandbox = SiteCertificate::existing_root(&config.sandbox_folder());
        let system = rustls_native_certs::load_native_certs().certs;
        own.chain(sandbox).chain(system.into_iter().map(|root| root.to_vec())).collect()
    }
}
