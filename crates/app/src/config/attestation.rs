//! The settings of attestations.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use prover::{AttestorAddress, InvalidAttestorAddress};

use super::values::{socket, within};

/// The attestor, and the limits of proofs.
#[derive(Debug, Clone)]
pub struct AttestationConfig {
    /// `None` for an attestor inside the service, for the sandbox platform only.
    pub attestor: Option<AttestorAddress>,
    /// The number of concurrent proofs.
    pub proofs: usize,
    /// The number of concurrent proofs of one team.
    pub proofs_per_team: usize,
    /// The address on which the sandbox platform is served over TLS.
    pub sandbox_listen: SocketAddr,
}

pub(super) fn attesting(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> AttestationConfig {
    let proofs = values.get("proofs").map_or("1", String::as_str);
    let proofs = within(proofs, "proofs", 1..=64, faults);
    let of_team = values.get("proofs_per_team").map_or("64", String::as_str);
    let of_team = within(of_team, "proofs_per_team", 1..=64, faults);
    AttestationConfig {
        attestor: attestor(values, faults),
        proofs: usize::try_from(proofs).unwrap_or(1),
        proofs_per_team: usize::try_from(of_team.min(proofs)).unwrap_or(1),
        sandbox_listen: sandbox_listen(values, faults),
    }
}

/// Reads the configured attestor: `tls://[TOKEN@]HOST[:PORT]`, and its public keys.
fn attestor(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> Option<AttestorAddress> {
    let (url, keys) = (values.get("attestor_url"), values.get("attestor_key"));
    let (Some(url), Some(keys)) = (url, keys) else {
        if url.is_some() || keys.is_some() {
            faults.push("attestor_url and attestor_key go together".into());
        }
        return None;
    };
    let address = AttestorAddress::parse(url, keys);
    let texts = |invalid: Vec<InvalidAttestorAddress>| invalid.into_iter().map(|it| it.to_string());
    address.map_err(|invalid| faults.extend(texts(invalid))).ok()
}

/// Reads the address on which the sandbox platform is served over TLS; by default with any port.
fn sandbox_listen(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> SocketAddr {
    let given = values.get("sandbox_listen");
    let given = given.and_then(|text| socket(text, "sandbox_listen", faults));
    given.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
}
