//! Verifies and records the server's certificate chain. A chain that is not valid does not end the
//! handshake, so that the rest can be observed; nothing is requested on such a connection.

use std::sync::{Arc, Mutex};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use webpki::EndEntityCert;

use crate::{observation::CertificateObserved, text::printable};

const MAX_NAMES: usize = 10;

/// Verifies chains, and keeps what it found of the last one.
#[derive(Debug)]
pub(crate) struct ChainRecorder {
    verifier: Arc<WebPkiServerVerifier>,
    observed: Mutex<Option<CertificateObserved>>,
}

impl ChainRecorder {
    pub(crate) fn new(
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { verifier, observed: Mutex::new(None) })
    }

    /// Returns what was found of the chain; `None` if there was none.
    pub(crate) fn observed(&self) -> Option<CertificateObserved> {
        self.observed.lock().ok().and_then(|observed| observed.clone())
    }
}

impl ServerCertVerifier for ChainRecorder {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(leaf, intermediates, name, ocsp, now);
        let names = EndEntityCert::try_from(leaf).ok().map(|leaf| {
            let names = leaf.valid_dns_names().take(MAX_NAMES);
            names.map(printable).collect()
        });
        let observed = CertificateObserved {
            error: verified.err().map(|error| printable(&explain(&error))),
            length: intermediates.len().saturating_add(1),
            names: names.unwrap_or_default(),
        };
        if let Ok(mut place) = self.observed.lock() {
            *place = Some(observed);
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn explain(error: &Error) -> String {
    if let Error::InvalidCertificate(error) = error {
        if *error == CertificateError::UnknownIssuer {
            return "the chain does not lead to a trusted root".to_owned();
        }
        if matches!(
            error,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ) {
            return "the certificate is for other names".to_owned();
        }
        return error.to_string();
    }
    error.to_string()
}
