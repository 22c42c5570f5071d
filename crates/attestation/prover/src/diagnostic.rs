//! Examines the attestor.

use async_trait::async_trait;
use attestation::signed::hex;
use ports::{
    attestor::AttestError,
    diagnostic::{Diagnosis, Diagnostic},
};

use crate::AttestorAddress;

/// The time before the end of an attestor's key from which an operator should know.
const NOTED_MILLIS: u64 = 14 * 24 * 60 * 60 * 1000;

/// Examines whether the attestor is reached and has a configured key. The token is not examined: an attestor
/// reads it with the first order.
pub struct AttestorDiagnostic {
    /// `None` if the service attests its sandbox platform alone.
    pub address: Option<AttestorAddress>,
}

#[async_trait]
impl Diagnostic for AttestorDiagnostic {
    fn subject(&self) -> &'static str {
        "attestor"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let Some(address) = &self.address else {
            return vec![Diagnosis::ok(
                "none: sessions of the sandbox platform alone are attested",
            )];
        };
        let place = format!("{address:?}");
        match address.connect().await {
            Ok(channel) => {
                let welcome = channel.welcome;
                let key = hex(&welcome.public_key);
                let mut found =
                    vec![Diagnosis::ok(format!("{place} has the configured key {key}"))];
                if welcome.valid_to < now_millis().saturating_add(NOTED_MILLIS) {
                    let advice =
                        "have its operator create the next key, and add that to attestor_key";
                    found.push(Diagnosis::warning("its key ends within two weeks", advice));
                }
                found
            }
            Err(error) => vec![Diagnosis::error(&place, &error, advice(&error))],
        }
    }
}

const fn advice(error: &AttestError) -> &'static str {
    if error.is_temporary() {
        "correct attestor_url, or the rules of the network between; is the attestor running?"
    } else {
        "ask its operator for its public keys, and set attestor_key"
    }
}

fn now_millis() -> u64 {
    let now = rustls::pki_types::UnixTime::now();
    now.as_secs().saturating_mul(1000)
}
