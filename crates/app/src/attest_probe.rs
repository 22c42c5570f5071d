//! `avouch attest probe`: whether the answer of a URL can be attested.

use std::{io::IsTerminal as _, process::ExitCode};

use async_trait::async_trait;
use command_line::{CommandError, ProbeArguments, ProbeFormat, read_pem};
use domain::{secret::Secret, workflow::AttestMode};
use ports::authoring::{AttestationProbe, HostAssessment};
use probe::{ProbeReport, ProbeTarget, ServerProbe};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::config::Config;

/// The exit code if nothing was probed: the arguments are wrong, or the server does not answer. It is
/// that of wrong options, which clap refuses.
const NOT_PROBED: u8 = 2;

/// Probes a server, prints the report, and returns the exit code.
pub(crate) async fn probe(config: &Config, arguments: ProbeArguments) -> ExitCode {
    let wanted = arguments.mode.map(AttestMode::from);
    let is_terminal = std::io::stdout().is_terminal();
    let default = if is_terminal { ProbeFormat::Text } else { ProbeFormat::Json };
    let format = arguments.format.unwrap_or(default);
    let report = match report(config, arguments, wanted).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("avouch: {}", application::error_chain(&*error));
            return ExitCode::from(NOT_PROBED);
        }
    };
    match format {
        ProbeFormat::Text => print!("{}", report.to_text()),
        ProbeFormat::Json => println!("{}", report.to_json()),
    }
    if report.can_be_attested(wanted) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn report(
    config: &Config,
    arguments: ProbeArguments,
    wanted: Option<AttestMode>,
) -> Result<ProbeReport, CommandError> {
    let headers: Vec<Secret> = arguments.header.into_iter().map(|header| header.0).collect();
    let target = ProbeTarget::parse(&arguments.url, &headers)?;
    // The prover trusts these, too.
    let mut roots = config.egress_roots.clone();
    if let Some(file) = arguments.ca {
        let pem = read_pem(&file)?;
        let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| format!("{}: {error}", file.display()))?;
        if found.is_empty() {
            return Err(format!("{}: there is no certificate in it", file.display()).into());
        }
        roots.extend(found.iter().map(|root| root.to_vec()));
    }
    let observed = ServerProbe::new(target, &roots, arguments.connect)?.run().await?;
    let report = ProbeReport::new(observed);
    Ok(match wanted {
        Some(mode) => report.restricted_to(mode),
        None => report,
    })
}

/// Probes the hosts of a definition in a studio on this machine.
pub(crate) struct HostProbe {
    /// Certificates in DER that are trusted besides the public ones.
    pub(crate) roots: Vec<Vec<u8>>,
}

#[async_trait]
impl AttestationProbe for HostProbe {
    async fn assess(&self, host: &str, url: &str) -> HostAssessment {
        let host = host.to_owned();
        match self.report(url).await {
            Ok(report) => {
                let (can_attest, reasons) = report.best();
                HostAssessment { host, can_attest, reasons }
            }
            Err(error) => {
                let reasons = vec![application::error_chain(&*error)];
                HostAssessment { host, can_attest: false, reasons }
            }
        }
    }
}

impl HostProbe {
    async fn report(&self, url: &str) -> Result<ProbeReport, CommandError> {
        let target = ProbeTarget::parse(url, &[])?;
        let observed = ServerProbe::new(target, &self.roots, None)?.run().await?;
        Ok(ProbeReport::new(observed))
    }
}
