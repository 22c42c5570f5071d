//! The handshakes of a probe: one with everything that can be offered, one with the request, and one
//! for each version, suite and group whose outcome is not known yet.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use domain::{egress::is_public, workflow::AttestMode};
use prover::offered_parameters;
use rustls::{
    RootCertStore,
    version::{TLS12, TLS13},
};
use tokio::time::{Instant, timeout};

use crate::{
    connection::{ConnectionError, Endpoint, HandshakeOffer},
    examination::examine,
    exchange::exchange,
    handshakes::{HANDSHAKE_TIMEOUT, HandshakeAttempt, Handshakes, KnownParameters, everything},
    observation::{
        AddressObserved, AlpnOutcome, CertificateObserved, ExaminedMode, ExchangeOutcome,
        Observations, Offer,
    },
    target::{ProbeTarget, reveal_mode},
    text::printable,
};

/// Time limit of a probe.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Time limit of the request and its response.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(8);
const MAX_ADDRESSES: usize = 4;

/// A probe of a URL.
pub struct ServerProbe {
    target: ProbeTarget,
    roots: Arc<RootCertStore>,
    /// `HOST:PORT` to connect to in place of the URL's.
    connect: Option<String>,
}

/// Why a server was not probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("a given root is not a valid certificate")]
    Root(#[source] rustls::Error),
    #[error("`{0}` resolves to no address")]
    Resolve(String),
    #[error("no connection to {address}: {why}")]
    Unreachable { address: String, why: String },
    #[error("{0} answers no TLS handshake within {seconds} seconds", seconds = HANDSHAKE_TIMEOUT.as_secs())]
    Unanswered(String),
}

impl ServerProbe {
    /// Creates a probe that trusts the public roots, as the prover does, and the DER certificates in
    /// `extra`.
    ///
    /// # Errors
    /// A root is not a valid certificate.
    pub fn new(
        target: ProbeTarget,
        extra: &[Vec<u8>],
        connect: Option<String>,
    ) -> Result<Self, ProbeError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in extra {
            roots.add(root.clone().into()).map_err(ProbeError::Root)?;
        }
        Ok(Self { target, roots: Arc::new(roots), connect })
    }

    /// Probes the server.
    ///
    /// # Errors
    /// It cannot be reached, or does not answer.
    pub async fn run(&self) -> Result<Observations, ProbeError> {
        let deadline = Instant::now() + DEADLINE;
        let (first, mut handshakes) = self.reach(deadline).await?;
        let address = handshakes.endpoint.address;
        let (general, alpn) = handshakes.with_any_protocol(first, everything(&[&TLS13])).await;
        let older = handshakes.attempt(&everything(&[&TLS12])).await;
        let (older, older_alpn) = handshakes.with_any_protocol(older, everything(&[&TLS12])).await;
        if matches!(general, HandshakeAttempt::Unanswered)
            && matches!(older, HandshakeAttempt::Unanswered)
        {
            return Err(ProbeError::Unanswered(address.to_string()));
        }
        let versions = vec![
            Offer { name: "TLS 1.2".to_owned(), outcome: older.outcome() },
            Offer { name: "TLS 1.3".to_owned(), outcome: general.outcome() },
        ];
        let (general, older) = (general.connection(), older.connection());
        let alpn = if general.is_some() { alpn } else { older_alpn };
        handshakes.has_alpn = alpn != AlpnOutcome::Refused;
        let mut known = KnownParameters::default();
        let certificate = general.as_ref().or(older.as_ref()).and_then(|it| it.certificate());
        let hello_retry_request = general.as_ref().map(|it| it.has_hello_retry());
        if let Some(general) = &general {
            known.note(general);
        }
        let has_tls13 = general.is_some();
        drop((general, older));
        let (exchange, examined) =
            self.request(&mut handshakes, has_tls13, certificate.as_ref(), &mut known).await;
        let (suites, groups) = handshakes.restricted(has_tls13, &known).await;
        Ok(Observations {
            url: self.target.url.clone(),
            address: AddressObserved {
                socket_address: address.to_string(),
                is_public: is_public(address.ip()),
            },
            url_defects: self.target.defects.clone(),
            versions,
            suites,
            groups,
            hello_retry_request,
            alpn,
            certificate,
            exchange,
            examined,
        })
    }

    /// Attempts the first handshake with each address, and keeps the first one that answers.
    async fn reach(&self, deadline: Instant) -> Result<(HandshakeAttempt, Handshakes), ProbeError> {
        let ProbeTarget { host, port, server_name, .. } = &self.target;
        let name = self.connect.clone().unwrap_or_else(|| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        });
        let unresolved = || ProbeError::Resolve(printable(&name));
        let addresses = timeout(HANDSHAKE_TIMEOUT, tokio::net::lookup_host(&name)).await;
        let addresses = addresses.ok().and_then(Result::ok).ok_or_else(unresolved)?;
        let addresses: Vec<SocketAddr> = addresses.take(MAX_ADDRESSES).collect();
        let (mut failure, mut count) = (unresolved(), 0);
        let mut addresses = addresses.into_iter().peekable();
        while let Some(address) = addresses.next() {
            let roots = self.roots.clone();
            let endpoint = Endpoint { address, server_name: server_name.clone(), roots };
            let mut handshakes = Handshakes { endpoint, deadline, count, has_alpn: true };
            let first = handshakes.attempt(&everything(&[&TLS13])).await;
            count = handshakes.count;
            failure = match first {
                HandshakeAttempt::Failed(ConnectionError::Connect(why)) => {
                    ProbeError::Unreachable { address: address.to_string(), why }
                }
                HandshakeAttempt::Unanswered if addresses.peek().is_some() => {
                    ProbeError::Unanswered(address.to_string())
                }
                HandshakeAttempt::Open(_)
                | HandshakeAttempt::Failed(
                    ConnectionError::Refused(_) | ConnectionError::NoProtocol,
                )
                | HandshakeAttempt::Unanswered
                | HandshakeAttempt::NotTried => return Ok((first, handshakes)),
            };
        }
        Err(failure)
    }

    /// Sends the request on a connection with the parameters of an attestation if the server accepts
    /// them, and else on any. Nothing is sent to a server whose certificate is not valid: the headers
    /// may have credentials.
    async fn request(
        &self,
        handshakes: &mut Handshakes,
        has_tls13: bool,
        certificate: Option<&CertificateObserved>,
        known: &mut KnownParameters,
    ) -> (ExchangeOutcome, Vec<(AttestMode, ExaminedMode)>) {
        let not_sent = |why: &str| (ExchangeOutcome::NotSent(why.to_owned()), vec![]);
        match certificate {
            None => return not_sent("no handshake was completed"),
            Some(certificate) if certificate.error.is_some() => {
                return not_sent("the certificate is not valid");
            }
            Some(_) => (),
        }
        let attested = [AttestMode::ZktlsFull, AttestMode::FullReveal].map(|mode| HandshakeOffer {
            provider: offered_parameters(reveal_mode(mode)),
            versions: vec![&TLS13],
        });
        let mut offers: Vec<_> = attested.into_iter().filter(|_| has_tls13).collect();
        offers.push(everything(&[&TLS13, &TLS12]));
        for offer in offers {
            let HandshakeAttempt::Open(mut connection) = handshakes.attempt(&offer).await else {
                continue;
            };
            if connection.certificate().is_none_or(|certificate| certificate.error.is_some()) {
                return not_sent("the certificate is not valid");
            }
            known.note(&connection);
            let deadline = handshakes.deadline.min(Instant::now() + EXCHANGE_TIMEOUT);
            let request = self.target.request();
            return match exchange(&mut connection, &request, deadline).await {
                Err(why) => (ExchangeOutcome::NoResponse(why), vec![]),
                Ok(response) => {
                    let pointer = response.shortest_value.as_deref().unwrap_or("/value");
                    let roots = &self.roots.roots;
                    let examined = examine(&connection, &self.target, pointer, roots);
                    (ExchangeOutcome::Response(Box::new(response)), examined)
                }
            };
        }
        not_sent("no handshake was completed in time")
    }
}
