//! Examines the addresses of the service: the public URL, and the reverse proxies in front of it.

use std::net::SocketAddr;

use async_trait::async_trait;
use ports::diagnostic::{Diagnosis, Diagnostic};
use url::{Host, Url};

use crate::TrustedProxies;

/// Examines whether the public URL, the address of the server and the trusted proxies fit together. Connects
/// to nothing.
pub struct AddressDiagnostic {
    pub public_url: String,
    pub listen: SocketAddr,
    pub trusted_proxies: TrustedProxies,
}

#[async_trait]
impl Diagnostic for AddressDiagnostic {
    fn subject(&self) -> &'static str {
        "public url"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let (url, mut found) = (&self.public_url, vec![]);
        let Ok(parsed) = Url::parse(url) else {
            let advice = "set public_url to the URL that partners and applicants see";
            return vec![Diagnosis::failed(format!("{url} is no URL"), advice)];
        };
        let (is_https, is_local) = (parsed.scheme() == "https", is_local(&parsed));
        found.push(match (is_https, is_local) {
            (true, _) => Diagnosis::ok(url),
            (false, true) => Diagnosis::ok(format!("{url}, for this machine alone")),
            (false, false) => Diagnosis::failed(
                format!("{url} is not https: keys and what applicants type are sent as plaintext"),
                "have a reverse proxy terminate TLS, and set public_url to its https:// URL",
            ),
        });
        // The service itself does not speak TLS, so that a proxy has to be in front of it.
        if is_https && self.trusted_proxies.0.is_empty() {
            found.push(Diagnosis::warning(
                "no proxy is trusted, so that all clients seem to have the address of the proxy",
                "set trusted_proxies to the addresses of the proxy that terminates TLS",
            ));
        }
        let any = [[0, 0, 0, 0].into(), [255, 255, 255, 255].into()];
        if any.iter().all(|address| self.trusted_proxies.0.contain(*address)) {
            found.push(Diagnosis::failed(
                "every address is trusted as a proxy: clients can claim any address",
                "name only the addresses of the proxies in trusted_proxies",
            ));
        }
        if !is_https && !self.listen.ip().is_loopback() {
            found.push(Diagnosis::warning(
                format!("the server listens on {} without TLS", self.listen),
                "listen on an address that only the reverse proxy reaches",
            ));
        }
        found
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use ports::diagnostic::DiagnosisState::{self, Failed, Ok, Warning};

    use super::*;

    #[tokio::test]
    async fn plaintext_and_missing_or_open_proxies_are_told() {
        let examine = async |url: &str, listen: &str, proxies: &str| -> Vec<DiagnosisState> {
            let diagnostic = AddressDiagnostic {
                public_url: url.to_owned(),
                listen: listen.parse().unwrap(),
                trusted_proxies: TrustedProxies(proxies.parse().unwrap()),
            };
            diagnostic.examine().await.into_iter().map(|found| found.state).collect()
        };
        let local = "127.0.0.1:8080";
        assert_eq!(examine("https://a.example", local, "10.0.0.1").await, [Ok]);
        assert_eq!(examine("http://127.0.0.1:8080", local, "").await, [Ok]);
        assert_eq!(examine("https://a.example", local, "").await, [Ok, Warning]);
        assert_eq!(examine("https://a.example", local, "0.0.0.0/0").await, [Ok, Failed]);
        assert_eq!(examine("http://a.example", "0.0.0.0:80", "").await, [Failed, Warning]);
    }
}
