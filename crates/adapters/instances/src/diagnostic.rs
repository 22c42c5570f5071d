//! Examines for `avouch doctor` the certificate of an instance, and whether it reaches the browser hosts.

use std::{net::SocketAddr, time::Duration};

use async_trait::async_trait;
use ports::diagnostic::{Diagnosis, Diagnostic};
use rustls_pki_types::UnixTime;

use crate::{
    browsers::report,
    identity::{IdentityFiles, InstanceIdentity},
};

/// A certificate that ends within this time is warned of.
const RENEWAL_NOTICE: Duration = Duration::from_secs(14 * 24 * 3600);
/// The time within which a name must have been looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of addresses of a name that are examined.
const MAX_ADDRESSES: usize = 16;
const HOSTS_ADVICE: &str = "check that a process with AVOUCH_ROLE=browser listens there, that the network \
                            lets this machine in, and that the certificates of both sides are from the same \
                            roots";

/// Examines the certificate with which other processes of the deployment know this one.
#[derive(Debug)]
pub struct CertificateDiagnostic {
    /// `None` for a process that is alone.
    pub files: Option<IdentityFiles>,
}

#[async_trait]
impl Diagnostic for CertificateDiagnostic {
    fn subject(&self) -> &'static str {
        "certificate"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let Some(files) = &self.files else {
            return vec![Diagnosis::ok("none is needed: no other instances are configured")];
        };
        let place = files.certificate.display().to_string();
        let identity = match InstanceIdentity::open(files.clone()) {
            Ok(identity) => identity,
            Err(error) => {
                let advice =
                    "correct AVOUCH_INSTANCE_CERT, AVOUCH_INSTANCE_KEY and AVOUCH_INSTANCE_ROOTS";
                return vec![Diagnosis::error(&place, &error, advice)];
            }
        };
        let now = UnixTime::now();
        let soon = UnixTime::since_unix_epoch(
            Duration::from_secs(now.as_secs()).saturating_add(RENEWAL_NOTICE),
        );
        let advice = "issue a new certificate: it is read within seconds, without a restart";
        vec![match (identity.is_valid_at(now), identity.is_valid_at(soon)) {
            (Ok(()), Ok(())) => {
                Diagnosis::ok(format!("{place}: other instances accept it as `{}`", files.name))
            }
            (Ok(()), Err(_)) => {
                let days = RENEWAL_NOTICE.as_secs() / (24 * 3600);
                Diagnosis::warning(format!("{place}: it ends within {days} days"), advice)
            }
            (Err(error), _) => Diagnosis::error(&place, &error, advice),
        }]
    }
}

/// Examines each browser host of an instance.
#[derive(Debug)]
pub struct HostsDiagnostic {
    /// `HOST:PORT` each.
    pub names: Vec<String>,
    pub files: IdentityFiles,
    /// The region of the instance; it uses no hosts of other regions.
    pub region: Option<String>,
}

#[async_trait]
impl Diagnostic for HostsDiagnostic {
    fn subject(&self) -> &'static str {
        "browser hosts"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let identity = match InstanceIdentity::open(self.files.clone()) {
            Ok(identity) => identity,
            Err(error) => {
                let advice = "see the line on the certificate";
                return vec![Diagnosis::error("they cannot be reached", &error, advice)];
            }
        };
        let mut found = vec![];
        for name in &self.names {
            match look_up(name).await {
                Ok(addresses) => {
                    let examined =
                        addresses.iter().map(|address| self.host(&identity, name, *address));
                    found.extend(futures_util::future::join_all(examined).await);
                }
                Err(reason) => {
                    let advice = "correct AVOUCH_BROWSER_HOSTS, or the names of the network";
                    found.push(Diagnosis::failed(format!("{name}: {reason}"), advice));
                }
            }
        }
        found
    }
}

impl HostsDiagnostic {
    async fn host(
        &self,
        identity: &InstanceIdentity,
        name: &str,
        address: SocketAddr,
    ) -> Diagnosis {
        let place = format!("{name} ({address})");
        let usage = match report(identity, address).await {
            Ok(usage) => usage,
            Err(error) => return Diagnosis::error(&place, &error, HOSTS_ADVICE),
        };
        let detail = format!(
            "{place}: {} of {} browsers run, release {}",
            usage.used, usage.slots, usage.version
        );
        if usage.region != self.region {
            let region = |region: &Option<String>| region.clone().unwrap_or_else(|| "none".into());
            let (theirs, own) = (region(&usage.region), region(&self.region));
            return Diagnosis::warning(
                format!("{detail}; its region is {theirs}, and this instance's {own}"),
                "an instance uses the hosts of its own region only: set AVOUCH_REGION of both sides",
            );
        }
        if usage.draining {
            return Diagnosis::warning(
                format!("{detail}; it drains, and starts no browsers"),
                "nothing, if it is replaced at the moment",
            );
        }
        Diagnosis::ok(detail)
    }
}

async fn look_up(name: &str) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host(name)).await;
    let found = found.map_err(|_| format!("not found within {} s", LOOKUP_TIMEOUT.as_secs()))?;
    let found: Vec<_> = found.map_err(|error| error.to_string())?.take(MAX_ADDRESSES).collect();
    if found.is_empty() { Err("it has no address".into()) } else { Ok(found) }
}
