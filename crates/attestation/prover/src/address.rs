//! The address of an attestor, with its public keys.

use std::fmt;

use attestation::signed::unhex;
use url::Url;

/// The port of an attestor whose URL names none.
const DEFAULT_PORT: u16 = 7443;

/// Address of the attestor, with its public keys.
#[derive(Clone)]
pub struct AttestorAddress {
    pub host: String,
    pub port: u16,
    /// Token that authenticates this client; empty if the attestor serves every client.
    pub token: String,
    /// Its public keys (Ed25519): one, or two during a key rotation.
    pub keys: Vec<[u8; 32]>,
}

/// Which part of an attestor's address is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAttestorAddress {
    #[error("attestor_url must be tls://HOST:PORT, or with TOKEN@ before the host")]
    Url,
    #[error("attestor_key must be 64 hexadecimal digits, or several with commas")]
    Keys,
}

impl AttestorAddress {
    /// Parses `tls://[TOKEN@]HOST[:PORT]`, and public keys in hexadecimal digits, separated by
    /// commas.
    ///
    /// # Errors
    /// All invalid parts.
    pub fn parse(url: &str, keys: &str) -> Result<Self, Vec<InvalidAttestorAddress>> {
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "tls");
        let url = url.and_then(|url| Some((url.host_str()?.to_owned(), url)));
        let keys: Option<Vec<_>> = keys.split(',').map(|key| public_key(key.trim())).collect();
        match (url, keys) {
            (Some((host, url)), Some(keys)) => Ok(Self {
                host,
                port: url.port().unwrap_or(DEFAULT_PORT),
                token: url.username().to_owned(),
                keys,
            }),
            (Some(_), None) => Err(vec![InvalidAttestorAddress::Keys]),
            (None, Some(_)) => Err(vec![InvalidAttestorAddress::Url]),
            (None, None) => Err(vec![InvalidAttestorAddress::Url, InvalidAttestorAddress::Keys]),
        }
    }
}

fn public_key(digits: &str) -> Option<[u8; 32]> {
    unhex(&digits.to_ascii_lowercase())?.try_into().ok()
}

/// Leaves out the token.
impl fmt::Debug for AttestorAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_may_have_a_token_and_a_port() {
        let (one, two) = ("0A".repeat(32), "0b".repeat(32));
        let address =
            AttestorAddress::parse("tls://token@attestor.example", &format!("{one}, {two}"));
        let address = address.unwrap();
        assert_eq!((&*address.host, address.port), ("attestor.example", 7443));
        assert_eq!((&*address.token, address.keys), ("token", vec![[10; 32], [11; 32]]));
        let address = AttestorAddress::parse("tls://127.0.0.1:1", &one).unwrap();
        assert_eq!((address.port, format!("{address:?}")), (1, "127.0.0.1:1".into()));
    }

    #[test]
    fn all_invalid_parts_are_returned() {
        use InvalidAttestorAddress::{Keys, Url};
        let key = "0a".repeat(32);
        for (url, keys, invalid) in [
            ("https://attestor.example", &*key, vec![Url]),
            ("tls://attestor.example", "0a", vec![Keys]),
            ("tls://attestor.example", "", vec![Keys]),
            ("attestor.example", "0a", vec![Url, Keys]),
        ] {
            assert_eq!(AttestorAddress::parse(url, keys).unwrap_err(), invalid, "{url} {keys}");
        }
    }
}
