//! `avouch doctor`: the examinations of a deployment, wired to their adapters.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use application::diagnosis::DeploymentDiagnosis;
use chromium::{
    BrowserDiagnostic, EgressDiagnostic, ExaminedBrowser, FleetDiagnostic, SandboxDiagnostic,
};
use command_line::{CommandError, DoctorFormat, DoctorReport};
use domain::id::InstanceId;
use http_api::{AddressDiagnostic, TrustedProxies};
use instances::{CertificateDiagnostic, HostsDiagnostic};
use limits::RedisDiagnostic;
use messaging::MailDiagnostic;
use objects::StorageDiagnostic;
use ports::{
    clock::Clock,
    diagnostic::{Diagnosis, Diagnostic},
    driving::DiagnosedSubject,
    random::RandomSource as _,
};
use prover::AttestorDiagnostic;
use store::DatabaseDiagnostic;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::browsers_folder,
    diagnostic::{DataFolderDiagnostic, SecretKeyDiagnostic},
    encryption::XChaChaCipher,
};

use crate::{
    browser_sandbox::{CORES_PER_BROWSER, SANDBOX_ARGUMENT},
    config::{BrowserConfig, Config, HostConfig, is_setting},
};

/// Examines a deployment. `faults` are those of its configuration; where there are some, nothing else is
/// examined, since the settings that are wrong have no meaning.
pub(crate) async fn examine(
    config: &Config,
    faults: &[String],
    variables: impl Iterator<Item = String>,
    format: DoctorFormat,
) -> Result<DoctorReport, CommandError> {
    let settings = settings(faults, variables);
    if !faults.is_empty() {
        let nothing = DeploymentDiagnosis { diagnostics: vec![] };
        return Ok(DoctorReport::of(settings, &nothing, format).await);
    }
    let browsers = browsers_folder(InstanceId::from_u128(SystemRandom.new_id()))?;
    let diagnosis = DeploymentDiagnosis { diagnostics: diagnostics(config, &browsers) };
    let report = DoctorReport::of(settings, &diagnosis, format).await;
    // A folder that cannot be removed now is removed at the next start of a service.
    let _ = fs::remove_dir_all(&browsers);
    Ok(report)
}

fn settings(faults: &[String], variables: impl Iterator<Item = String>) -> Vec<DiagnosedSubject> {
    let advice = "correct the setting: the operator's guide has a table of all";
    let mut found: Vec<_> =
        faults.iter().map(|fault| Diagnosis::failed(fault.clone(), advice)).collect();
    if found.is_empty() {
        found.push(Diagnosis::ok("understood"));
    }
    let unknown: BTreeSet<_> = variables.filter(|name| !is_setting(name)).collect();
    found.extend(unknown.into_iter().map(|name| {
        let detail = format!("{name} is no setting of the service, and does nothing");
        Diagnosis::warning(detail, "correct its name, or remove it")
    }));
    let subject = |diagnosis| DiagnosedSubject { subject: "settings", diagnosis };
    found.into_iter().map(subject).collect()
}

fn diagnostics(config: &Config, browsers: &Path) -> Vec<Arc<dyn Diagnostic>> {
    if config.roles.is_browser_host() {
        // It has no database and no key but that of its certificate.
        let files = config.host_identity.as_ref().map(|own| own.files.clone());
        let certificate: Arc<dyn Diagnostic> = Arc::new(CertificateDiagnostic { files });
        return [vec![certificate], of_browsers(config, browsers)].concat();
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let database = Arc::new(DatabaseDiagnostic {
        url: config.database_url.clone(),
        timeouts: config.timeouts,
        clock: clock.clone(),
    });
    let files = config.instances.as_ref().map(|own| own.files.clone());
    let mut all: Vec<Arc<dyn Diagnostic>> = vec![
        database.clone(),
        Arc::new(DataFolderDiagnostic { folder: config.data_dir.clone() }),
        Arc::new(SecretKeyDiagnostic {
            folder: config.data_dir.clone(),
            database,
            has_own_keys: !config.seal_keys.is_empty(),
        }),
        Arc::new(CertificateDiagnostic { files }),
    ];
    all.extend(of_browsers(config, browsers));
    all.push(Arc::new(EgressDiagnostic {
        egress: config.egress.clone(),
        proxies: config.exits.clone(),
        country_check_url: config.exit_check.clone(),
    }));
    all.push(Arc::new(MailDiagnostic { server: config.mailing.smtp.clone() }));
    all.push(Arc::new(StorageDiagnostic {
        storage: config.storage.clone(),
        cipher: Arc::new(XChaChaCipher::new(&[0; 32])),
        clock,
    }));
    all.push(Arc::new(RedisDiagnostic { server: config.redis.clone() }));
    all.push(Arc::new(AttestorDiagnostic { address: config.attesting.attestor.clone() }));
    all.push(Arc::new(AddressDiagnostic {
        public_url: config.addresses.public.clone(),
        listen: config.listen,
        trusted_proxies: TrustedProxies(config.trusted_proxies.clone()),
    }));
    all
}

/// Where the browsers of a process come from; nothing for a process that has none.
fn of_browsers(config: &Config, browsers: &Path) -> Vec<Arc<dyn Diagnostic>> {
    match &config.browser {
        BrowserConfig::Elsewhere(address) => vec![Arc::new(FleetDiagnostic(address.clone()))],
        BrowserConfig::Hosts(HostConfig { names, files }) => vec![Arc::new(HostsDiagnostic {
            names: names.clone(),
            files: files.clone(),
            region: config.addresses.own.map(|region| region.as_str().to_owned()),
        })],
        BrowserConfig::Here { .. } if !config.roles.browser => vec![],
        BrowserConfig::Here { program, sandbox, .. } => {
            let helper = || ("/proc/self/exe".into(), vec![SANDBOX_ARGUMENT.to_owned()]);
            let browser = ExaminedBrowser {
                executable: program.clone(),
                folder: browsers.to_owned(),
                sandbox: sandbox.then(|| {
                    let (program, arguments) = helper();
                    (program, arguments, CORES_PER_BROWSER)
                }),
            };
            vec![Arc::new(SandboxDiagnostic(browser.clone())), Arc::new(BrowserDiagnostic(browser))]
        }
    }
}
