//! The key schedule (RFC 8446, section 7.1): every key is derived from the handshake secret and
//! from hashes of plaintext messages. No key is taken from a peer.

use ring::{aead, digest, hmac};

/// The supported cipher suites of TLS 1.3 (RFC 8446, appendix B.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    Aes128GcmSha256,
    Aes256GcmSha384,
    ChaCha20Poly1305Sha256,
}

impl Suite {
    /// Returns the suite with this number.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            0x1301 => Some(Self::Aes128GcmSha256),
            0x1302 => Some(Self::Aes256GcmSha384),
            0x1303 => Some(Self::ChaCha20Poly1305Sha256),
            _ => None,
        }
    }

    /// Returns its number in the TLS registry.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Aes128GcmSha256 => 0x1301,
            Self::Aes256GcmSha384 => 0x1302,
            Self::ChaCha20Poly1305Sha256 => 0x1303,
        }
    }

    /// Returns the length of its hash and of every secret, in bytes.
    #[must_use]
    pub fn hash_length(self) -> usize {
        self.digest().output_len()
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Aes256GcmSha384 => &digest::SHA384,
            Self::Aes128GcmSha256 | Self::ChaCha20Poly1305Sha256 => &digest::SHA256,
        }
    }

    fn mac(self) -> hmac::Algorithm {
        match self {
            Self::Aes256GcmSha384 => hmac::HMAC_SHA384,
            Self::Aes128GcmSha256 | Self::ChaCha20Poly1305Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128GcmSha256 => &aead::AES_128_GCM,
            Self::Aes256GcmSha384 => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305Sha256 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(crate) fn hash(self, parts: &[&[u8]]) -> Vec<u8> {
        let mut context = digest::Context::new(self.digest());
        for part in parts {
            context.update(part);
        }
        context.finish().as_ref().to_vec()
    }

    pub(crate) fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.mac(), key), message).as_ref().to_vec()
    }

    /// HKDF-Expand-Label (RFC 8446, section 7.1), with an output of at most one hash.
    pub(crate) fn expand_label(
        self,
        secret: &[u8],
        label: &str,
        context: &[u8],
        length: u8,
    ) -> Vec<u8> {
        let byte = |length: usize| u8::try_from(length).unwrap_or(u8::MAX);
        let label = format!("tls13 {label}");
        let mut info = vec![0, length, byte(label.len())];
        info.extend(label.as_bytes());
        info.push(byte(context.len()));
        info.extend(context);
        // The first block of HKDF-Expand (RFC 5869, section 2.3).
        info.push(1);
        let mut block = self.hmac(secret, &info);
        block.truncate(length.into());
        block
    }

    fn derive_secret(self, secret: &[u8], label: &str, hash: &[u8]) -> Vec<u8> {
        let length = u8::try_from(self.hash_length()).unwrap_or(u8::MAX);
        self.expand_label(secret, label, hash, length)
    }

    /// Derives the handshake traffic secrets of both sides from the handshake secret and the hash
    /// of the hellos.
    pub(crate) fn handshake_traffic(self, secret: &[u8], hellos: &[u8]) -> TrafficSecrets {
        TrafficSecrets {
            client: self.derive_secret(secret, "c hs traffic", hellos),
            server: self.derive_secret(secret, "s hs traffic", hellos),
        }
    }

    /// Derives the application traffic secrets of both sides from the handshake secret and the
    /// transcript hash up to the server's Finished.
    pub(crate) fn application_traffic(self, secret: &[u8], handshake: &[u8]) -> TrafficSecrets {
        let derived = self.derive_secret(secret, "derived", &self.hash(&[]));
        let master = self.hmac(&derived, &vec![0; self.hash_length()]);
        TrafficSecrets {
            client: self.derive_secret(&master, "c ap traffic", handshake),
            server: self.derive_secret(&master, "s ap traffic", handshake),
        }
    }

    /// Derives the handshake secret from the shared secret of the key exchange.
    #[must_use]
    pub fn handshake_secret(self, shared: &[u8]) -> Vec<u8> {
        let zeros = vec![0; self.hash_length()];
        let early = self.hmac(&zeros, &zeros);
        self.hmac(&self.derive_secret(&early, "derived", &self.hash(&[])), shared)
    }

    /// Computes the content of a Finished message (RFC 8446, section 4.4.4).
    pub(crate) fn finished(self, secret: &[u8], transcript: &[u8]) -> Vec<u8> {
        self.hmac(&self.derive_secret(secret, "finished", &[]), transcript)
    }

    pub(crate) fn key(self, secret: &[u8]) -> Option<aead::LessSafeKey> {
        let length = u8::try_from(self.aead().key_len()).ok()?;
        let key = self.expand_label(secret, "key", &[], length);
        aead::UnboundKey::new(self.aead(), &key).ok().map(aead::LessSafeKey::new)
    }

    pub(crate) fn iv(self, secret: &[u8]) -> Option<[u8; aead::NONCE_LEN]> {
        self.expand_label(secret, "iv", &[], 12).try_into().ok()
    }
}

/// The traffic secrets of both sides for one phase.
pub(crate) struct TrafficSecrets {
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
}
