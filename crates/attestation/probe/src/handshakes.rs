//! Makes the handshakes of a probe, within its limits.

use std::time::Duration;

use rustls::{
    ProtocolVersion, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    version::TLS13,
};
use tokio::time::{Instant, timeout_at};

use crate::{
    connection::{ConnectionError, Endpoint, HandshakeOffer, ProbedConnection},
    observation::{AlpnOutcome, Offer, OfferOutcome},
};

/// Time limit of a handshake, with the connection before it.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of handshakes of a probe.
pub const MAX_HANDSHAKES: usize = 20;

/// Offers everything that the TLS library has.
pub(crate) fn everything(versions: &[&'static SupportedProtocolVersion]) -> HandshakeOffer {
    HandshakeOffer { provider: ring::default_provider(), versions: versions.to_vec() }
}

/// What became of a handshake.
pub(crate) enum HandshakeAttempt {
    Open(Box<ProbedConnection>),
    Failed(ConnectionError),
    Unanswered,
    NotTried,
}

impl HandshakeAttempt {
    pub(crate) fn outcome(&self) -> OfferOutcome {
        match self {
            Self::Open(_) => OfferOutcome::Accepted,
            Self::Failed(error) => OfferOutcome::Refused(error.to_string()),
            Self::Unanswered => OfferOutcome::Unanswered,
            Self::NotTried => OfferOutcome::NotTried,
        }
    }

    pub(crate) fn connection(self) -> Option<Box<ProbedConnection>> {
        match self {
            Self::Open(connection) => Some(connection),
            Self::Failed(_) | Self::Unanswered | Self::NotTried => None,
        }
    }
}

/// Makes handshakes with one server, within the limits of a probe.
pub(crate) struct Handshakes {
    pub(crate) endpoint: Endpoint,
    pub(crate) deadline: Instant,
    pub(crate) count: usize,
    pub(crate) has_alpn: bool,
}

impl Handshakes {
    pub(crate) async fn attempt(&mut self, offer: &HandshakeOffer) -> HandshakeAttempt {
        let now = Instant::now();
        if self.count >= MAX_HANDSHAKES || now >= self.deadline {
            return HandshakeAttempt::NotTried;
        }
        self.count += 1;
        let deadline = self.deadline.min(now + HANDSHAKE_TIMEOUT);
        let opening = ProbedConnection::open(&self.endpoint, offer, self.has_alpn);
        match timeout_at(deadline, opening).await {
            Ok(Ok(connection)) => HandshakeAttempt::Open(Box::new(connection)),
            Ok(Err(error)) => HandshakeAttempt::Failed(error),
            Err(_) => HandshakeAttempt::Unanswered,
        }
    }

    /// Attempts a handshake again without a protocol if the server refused the offered one.
    pub(crate) async fn with_any_protocol(
        &mut self,
        first: HandshakeAttempt,
        offer: HandshakeOffer,
    ) -> (HandshakeAttempt, AlpnOutcome) {
        match first {
            HandshakeAttempt::Failed(ConnectionError::NoProtocol) => {
                let usual = std::mem::replace(&mut self.has_alpn, false);
                let second = self.attempt(&offer).await;
                self.has_alpn = usual;
                (second, AlpnOutcome::Refused)
            }
            HandshakeAttempt::Open(connection) => {
                let selected = connection.has_protocol();
                let outcome =
                    if selected { AlpnOutcome::Selected } else { AlpnOutcome::NotSelected };
                (HandshakeAttempt::Open(connection), outcome)
            }
            HandshakeAttempt::Failed(_)
            | HandshakeAttempt::Unanswered
            | HandshakeAttempt::NotTried => (first, AlpnOutcome::Unknown),
        }
    }

    /// Returns the outcome of each suite and group of TLS 1.3, each offered alone where the other
    /// handshakes did not show that the server accepts it.
    pub(crate) async fn restricted(
        &mut self,
        has_tls13: bool,
        known: &KnownParameters,
    ) -> (Vec<Offer>, Vec<Offer>) {
        let usual = ring::default_provider();
        let (mut suites, mut groups) = (vec![], vec![]);
        let tls13 = usual.cipher_suites.iter().filter(|suite| suite.tls13().is_some());
        for suite in tls13.copied() {
            let name = suite_name(suite.suite());
            let provider = CryptoProvider { cipher_suites: vec![suite], ..usual.clone() };
            let outcome = if !has_tls13 {
                OfferOutcome::NotTried
            } else if known.suites.contains(&name) {
                OfferOutcome::Accepted
            } else {
                self.attempt(&HandshakeOffer { provider, versions: vec![&TLS13] }).await.outcome()
            };
            suites.push(Offer { name, outcome });
        }
        for group in usual.kx_groups.iter().copied() {
            let name = group_name(group.name());
            let provider = CryptoProvider { kx_groups: vec![group], ..usual.clone() };
            let outcome = if !has_tls13 {
                OfferOutcome::NotTried
            } else if known.groups.contains(&name) {
                OfferOutcome::Accepted
            } else {
                self.attempt(&HandshakeOffer { provider, versions: vec![&TLS13] }).await.outcome()
            };
            groups.push(Offer { name, outcome });
        }
        (suites, groups)
    }
}

/// The names of what was negotiated in TLS 1.3 so far.
#[derive(Default)]
pub(crate) struct KnownParameters {
    suites: Vec<String>,
    groups: Vec<String>,
}

impl KnownParameters {
    pub(crate) fn note(&mut self, connection: &ProbedConnection) {
        if connection.version() == Some(ProtocolVersion::TLSv1_3) {
            self.suites.extend(connection.suite().map(|suite| suite_name(suite.suite())));
            self.groups.extend(connection.group().map(group_name));
        }
    }
}

/// Returns the name of a suite in the TLS registry, which leaves out the version.
pub(crate) fn suite_name(suite: rustls::CipherSuite) -> String {
    suite.as_str().map_or_else(|| format!("{suite:?}"), |name| name.replace("TLS13_", "TLS_"))
}

pub(crate) fn group_name(group: rustls::NamedGroup) -> String {
    group.as_str().map_or_else(|| format!("{group:?}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;

    use super::*;

    #[tokio::test]
    async fn there_are_no_handshakes_beyond_the_limits() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let now = Instant::now();
        for (count, deadline) in [(MAX_HANDSHAKES, now + HANDSHAKE_TIMEOUT), (0, now)] {
            let roots = Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
            let server_name = "a.example".try_into().unwrap();
            let endpoint = Endpoint { address, server_name, roots };
            let mut handshakes = Handshakes { endpoint, deadline, count, has_alpn: true };
            let attempt = handshakes.attempt(&everything(&[&TLS13])).await;
            assert!(matches!(attempt, HandshakeAttempt::NotTried), "{count}");
            assert_eq!(handshakes.count, count);
        }
    }
}
