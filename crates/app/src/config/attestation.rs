//! The settings of attestation.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use prover::AttestorAddress;
use url::Url;

use super::values::{socket, within};

/// The settings of attestation.
#[derive(Debug, Clone)]
pub struct AttestationConfig {
    /// The configured attestor; `None` for an attestor in this process, only for the sandbox
    /// platform.
    pub attestor: Option<AttestorAddress>,
    /// The number of proofs that are made at once.
    pub proofs: usize,
    /// Of these, the maximum for one team.
    pub proofs_per_team: usize,
    /// The address at which the sandbox platform is served over TLS.
    pub sandbox_listen: SocketAddr,
}

/// The port if the URL has none.
const PORT: u16 = 7443;

pub(super) fn attesting(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> AttestationConfig {
    let proofs = values.get("proofs").map_or("1", String::as_str);
    let proofs = within(proofs, "proofs", 1..=64, faults);
    let of_team = values.get("proofs_per_team").map_or("64", String::as_str);
    let of_team = within(of_team, "proofs_per_team", 1..=64, faults);
    AttestationConfig {
        attestor: witness(values, faults),
        proofs: usize::try_from(proofs).unwrap_or(1),
        proofs_per_team: usize::try_from(of_team.min(proofs)).unwrap_or(1),
        sandbox_listen: sandbox_listen(values, faults),
    }
}

/// Reads the attestor: `tls://[TOKEN@]HOST[:PORT]` and its public keys in hexadecimal.
fn witness(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Option<AttestorAddress> {
    let (url, keys) = (values.get("attestor_url"), values.get("attestor_key"));
    let (Some(url), Some(keys)) = (url, keys) else {
        if url.is_some() || keys.is_some() {
            faults.push("attestor_url and attestor_key go together".into());
        }
        return None;
    };
    let parsed = Url::parse(url).ok().filter(|url| url.scheme() == "tls");
    let host = parsed.as_ref().and_then(|url| url.host_str()).map(str::to_owned);
    if host.is_none() {
        faults.push("attestor_url must be tls://HOST:PORT, or with TOKEN@ before the host".into());
    }
    let keys: Vec<_> = keys.split(',').map(|key| public_key(key.trim())).collect();
    if keys.contains(&None) {
        faults.push("attestor_key must be 64 hexadecimal digits, or several with commas".into());
    }
    let url = parsed?;
    Some(AttestorAddress {
        host: host?,
        port: url.port().unwrap_or(PORT),
        token: url.username().to_owned(),
        keys: keys.into_iter().flatten().collect(),
    })
}

/// Reads the address at which the sandbox platform is served over TLS; by default any free port.
fn sandbox_listen(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> SocketAddr {
    let given = values.get("sandbox_listen");
    let given = given.and_then(|text| socket(text, "sandbox_listen", faults));
    given.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
}

fn public_key(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.to_ascii_lowercase();
    attestation::signed::unhex(&digits)?.try_into().ok()
}
